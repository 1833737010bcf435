"""The rounds of the start: coarser before the last one, if there are many points."""

from __future__ import annotations

import numpy as np
import pytest

import phdstream as phd
from phdstream.domains.binary_tree import BinaryTree
from phdstream.evaluation import count_points
from phdstream.privacy import Simulation
from phdstream.release.soundness import Fallback
from phdstream.streams.tracking.model.start import StartModel
from phdstream.streams.tracking.parameters import TrackingParameters

SQUARE = BinaryTree(phd.Box([(0, 1), (0, 1)], depth=40))
ONE_FINENESS = TrackingParameters().changed({"start.many": 1e12})


def counted_by_round(total: int, parameters: TrackingParameters) -> list[int]:
    """Return how many nodes each round counts first, of points that may be anywhere, with ε = 1."""
    start = StartModel(parameters, SQUARE, 1_000_000, Fallback())
    start.add_total(total, 1.0)
    return [start.refinement(at, share).first()[0].size for at, (share, _) in enumerate(parameters.start.rounds)]


def test_with_few_points_all_rounds_are_as_fine_as_their_noise_allows() -> None:
    assert counted_by_round(9_000, TrackingParameters()) == counted_by_round(9_000, ONE_FINENESS)


def test_with_many_points_each_round_counts_a_power_of_them() -> None:
    few, many = (np.array(counted_by_round(total, TrackingParameters())) for total in (10_000, 2_560_000))
    np.testing.assert_array_equal(many // few, [256**0.5, 256**0.75, 256])
    assert counted_by_round(2_560_000, ONE_FINENESS) == (few * 256).tolist()


@pytest.mark.slow
def test_so_large_areas_are_known_better() -> None:
    """A fortieth of the square, of half a million points at ε = 1: .5 of the error; without it the test fails."""
    points = np.random.default_rng(1).random((500_000, 2))
    area = np.array([[0.3, 0.3, 0.46, 0.46]])
    true = count_points(points, area)[0]

    def error(parameters: TrackingParameters) -> float:
        found = []
        for seed in range(12):
            stream = phd.TrackingStream(
                SQUARE.domain, 1.0, phd.Event(), insert_only=True, parameters=parameters, noise=Simulation(seed)
            )
            found.append(float(stream.update(points).count(area).value[0]) - true)
        return float(np.sqrt(np.mean(np.square(found))))

    assert error(TrackingParameters()) < 0.7 * error(ONE_FINENESS)
