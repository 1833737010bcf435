"""Which halves are empty: learnt from what is well known, and never the larger half."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phdstream.streams.tracking.model.emptiness import Emptiness
from phdstream.streams.tracking.model.split_tree import UNKNOWN, SplitTree
from phdstream.streams.tracking.parameters import EmptyHalves

RULE = EmptyHalves()


def test_it_is_learnt_from_what_is_well_known() -> None:
    contrast = np.where(np.arange(100) < 70, 1.0, 0.1)
    nodes = np.concatenate([np.arange(64) + 64, np.arange(36) + 128])
    whole = SplitTree(
        np.concatenate([np.arange(1, 64), nodes]), np.concatenate([np.zeros(63), contrast]), np.full(163, 1e-4)
    )
    assert Emptiness.seen_in(RULE, whole, 1000.0).prior_empty == pytest.approx(70 / 163, abs=0.15)
    doubtful = SplitTree(whole.node, whole.contrast, np.full(163, 1.0))
    assert Emptiness.seen_in(RULE, doubtful, 1000.0).prior_empty == 0.2
    assert Emptiness.seen_in(RULE, whole, 0.0).prior_empty == 0.2  # nodes that hold nothing tell nothing


@given(prior_empty=st.floats(0.02, 0.95), contrast=st.floats(-1, 1), variance=st.floats(1e-6, 20))
def test_only_small_halves_are_emptied_and_never_the_larger(
    prior_empty: float, contrast: float, variance: float
) -> None:
    if Emptiness(RULE, prior_empty).likely(np.array([contrast]), np.array([variance]))[0]:
        assert (1 - abs(contrast)) / 2 <= np.sqrt(variance)


def test_the_sparser_the_more_is_emptied() -> None:
    contrast, variance = np.linspace(0.5, 1, 50), np.full(50, 0.05)
    emptied = [int(Emptiness(RULE, part).likely(contrast, variance).sum()) for part in (0.05, 0.3, 0.6, 0.9)]
    assert emptied == sorted(emptied)
    assert emptied[-1] > emptied[0]


def test_the_sparser_the_more_a_first_count_decides() -> None:
    variances = [Emptiness(RULE, part).new_variance for part in (0.02, 0.5, 0.95)]
    assert variances == sorted(variances)
    assert variances[0] == pytest.approx(1, abs=0.1)
    assert variances[-1] == UNKNOWN
