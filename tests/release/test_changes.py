"""Changes between two releases."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phdstream.release.changes import difference


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30))
def test_the_difference_of_rows_counts_repeats(come: list[int], gone: list[int]) -> None:
    rows = np.array([[0.5, -1.0], [0.5, 2.0], [-3.0, 0.0], [-3.0, -0.5]])
    new, old = difference(rows[come], rows[gone])
    assert new.shape[1] == old.shape[1] == 2
    assert Counter(map(tuple, new)) == Counter(map(tuple, rows[come])) - Counter(map(tuple, rows[gone]))
    assert Counter(map(tuple, old)) == Counter(map(tuple, rows[gone])) - Counter(map(tuple, rows[come]))
    assert new.tolist() == sorted(new.tolist())
