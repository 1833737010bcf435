"""How far true counts may be from estimates: told by the estimate alone."""

from __future__ import annotations

import numpy as np
import pytest

import phdstream as phd
from phdstream.release.estimate import Estimate
from phdstream.release.unevenness import Unevenness, clustering


def family(counts: list[float], **columns: np.ndarray) -> tuple[Estimate, np.ndarray]:
    """Return a root with its children as cells, and where their parents stand."""
    nodes = np.array([1, *range(len(counts), 2 * len(counts))])
    count, zero = np.array([sum(counts), *counts]), np.zeros(nodes.size)
    leaf = np.arange(nodes.size) > 0
    whole = Estimate(nodes, leaf, count, count, zero, zero, count.astype(np.int64), **columns)
    return whole, np.zeros(nodes.size, dtype=np.int64)


class TestClustering:
    @pytest.mark.parametrize(
        ("counts", "expected"),
        [([50, 50], 0), ([100, 0], 1), ([25, 25, 25, 25], 0), ([100, 0, 0, 0], 1), ([75, 25], np.log2(1.25))],
    )
    def test_from_even_to_one_spot(self, counts: list[float], expected: float) -> None:
        assert clustering(*family(counts)) == pytest.approx(expected)

    def test_four_children_are_two_halvings(self) -> None:
        """Shares of 3/4 and 1/4, twice: the same clustering as once."""
        assert clustering(*family([56.25, 18.75, 18.75, 6.25])) == pytest.approx(clustering(*family([75, 25])))

    def test_shares_that_are_not_known_may_be_uneven(self) -> None:
        even, parent = family([50, 50], share_variance=np.array([0, 500.0, 500.0]))
        assert clustering(even, parent) > 0.1

    def test_nothing_tells(self) -> None:
        nobody = family([0, 0])
        assert 0 < clustering(*nobody) < 1


class TestCutNodes:
    def of(self, counts: list[float], share: float) -> float:
        uneven = Unevenness.of(*family(counts))
        return float(uneven.of_cut(np.array([1]), np.array([share]))[0])

    def test_the_covered_part_and_the_rest_are_alike(self) -> None:
        assert self.of([60, 40], 0.2) == pytest.approx(self.of([60, 40], 0.8))
        assert self.of([60, 40], 0.0) == self.of([60, 40], 1.0) == 0

    def test_it_is_that_of_a_cascade(self) -> None:
        """Halve 20,000 times at random four times over, and compare with the formula."""
        rng, contrast, n = np.random.default_rng(1), 0.6, 100.0
        held = n * ((1 + contrast * rng.choice([-1, 1], (20_000, 4))) / 2).prod(axis=1)
        a = np.log2(1 + contrast**2)
        uneven = Unevenness(np.array([n**2]), np.zeros(1), np.zeros(1), a)
        assert held.var() == pytest.approx(float(uneven.of_cut(np.array([0]), np.array([1 / 16]))[0]), rel=0.1)

    def test_cells_released_as_empty_may_hold_points(self) -> None:
        e, parent = family([100, 0])
        e.variance[:] = 30.0
        assert Unevenness.of(e, parent).of_cut(np.array([2]), np.array([0.3]))[0] > 0


class TestShares:
    def test_recent_points_widen_all_below(self) -> None:
        known, recent = (family([60, 40], uncounted=np.array([n, 0.6 * n, 0.4 * n])) for n in (0.0, 50.0))
        before, after = (Unevenness.of(*each).shares for each in (known, recent))
        assert after[0] == before[0]
        assert (after[1:] > before[1:]).all()

    def test_between_fine_counts_some_points_are_uncounted(self) -> None:
        stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 1.0, phd.Event(), noise=phd.Simulation(1))
        points = np.random.default_rng(1).random((3000, 2))
        assert stream.update(points).estimate.uncounted[0] == 0
        later = stream.update(points[:200]).estimate
        assert later.uncounted[0] == pytest.approx(200, abs=150)
        assert later.uncounted[later.leaf].sum() == pytest.approx(later.uncounted[0])
