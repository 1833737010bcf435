"""What a release expects of itself, against the truth; it warns where there are too few points, and only there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import phdstream as phd
from phdstream.arrays import Floats
from phdstream.baselines import UniformTotal
from phdstream.evaluation import count_points, random_rectangles, weighted_error
from phdstream.release.usefulness import AREAS, Usefulness

SQUARE = phd.Box([(0, 1), (0, 1)])


def town(number: int, rng: np.random.Generator) -> Floats:
    """Ten crowds of different size, and some points anywhere."""
    centre = np.random.default_rng(7).random((10, 2))
    points = rng.normal(centre[rng.integers(0, 10, number)], 0.02)
    points[: number // 10] = rng.random((number // 10, 2))
    return np.clip(points, 0, 1)


def ring(number: int, rng: np.random.Generator) -> Floats:
    angle = rng.uniform(0, 2 * np.pi, number)
    return 0.5 + 0.4 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.02, (number, 2))


Shape = Callable[[int, np.random.Generator], Floats]
METHODS = {"tracking": phd.TrackingStream, "paper": phd.PHDStream}


def released(method: str, shape: Shape, points: int, epsilon: float, ticks: int = 4) -> tuple[phd.Release, Floats]:
    """Return the last release of a stream that grows, and the true points."""
    rng, parts = np.random.default_rng(3), []
    stream = METHODS[method](SQUARE, epsilon, phd.Event(), insert_only=True, noise=phd.Simulation(seed=2))
    for _ in range(ticks):
        parts.append(shape(points // ticks, rng))
        release = stream.update(parts[-1])
    return release, np.concatenate(parts)


def measured(release: phd.Release, live: Floats) -> dict[str, float]:
    errors = {}
    for size in AREAS:
        queries = random_rectangles(np.array([[0, 1], [0, 1]]), 1500, size, seed=5)
        errors[size] = weighted_error(count_points(live, queries), count_points(release.sample(), queries))
    return errors


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [town, ring])
@pytest.mark.parametrize(("points", "epsilon"), [(40_000, 1.0), (4_000, 2.0), (4_000, 0.5)])
def test_the_expected_error_is_near_the_true_one(method: str, shape: Shape, points: int, epsilon: float) -> None:
    release, live = released(method, shape, points, epsilon)
    true = measured(release, live)
    for size, expected in release.usefulness.expected_error.items():
        least = 0.25 if size == "small" else 0.4  # how points lie inside cells, which is not in it, matters there
        assert least < (expected + 0.02) / (true[size] + 0.02) < 2.5, (size, expected, true[size])


@pytest.mark.parametrize("method", METHODS)
def test_few_points_are_warned_of_and_many_are_not(method: str) -> None:
    few, live = released(method, town, 80, 0.1)
    assert set(few.usefulness.worse_than_nothing) | set(few.usefulness.no_better_than_total) == set(AREAS)
    assert few.usefulness.warning.startswith("At this ε the release is expected to be no better than")
    assert measured(few, live)["small"] > 0.9
    many, live = released(method, town, 40_000, 1.0)
    assert many.usefulness.warning == ""
    assert max(measured(many, live).values()) < 0.5


def test_one_cell_shows_no_more_than_the_total() -> None:
    total = UniformTotal(SQUARE, 1.0, noise=phd.Simulation(seed=1))
    release = total.update(np.full((5_000, 2), 0.3))
    assert release.usefulness.worse_than_nothing == []
    assert release.usefulness.no_better_than_total == ["small", "medium", "large"]
    assert "no better than the total alone for small and medium and large areas" in release.usefulness.warning


def test_more_budget_never_makes_it_look_worse_by_much() -> None:
    errors = [released("tracking", town, 4_000, e)[0].usefulness.expected_error["medium"] for e in (0.1, 0.5, 2, 8)]
    assert errors == sorted(errors, reverse=True)


def test_by_hand() -> None:
    """Parts are nodes of the size asked for, or leaves above it; each is off by its own noise."""
    release, _ = released("paper", town, 4_000, 2.0, ticks=1)
    share = {int(node): 2.0 ** -(int(node).bit_length() - 1) for node in release.estimate.node}
    variance = dict(zip(release.estimate.node.tolist(), release.estimate.variance.tolist(), strict=True))
    leaves = set(release.leaves.tolist())
    for size, area in AREAS.items():
        parts = [n for n in share if (share[n] <= area < share.get(n >> 1, 0)) or (n in leaves and share[n] > area)]
        assert sum(share[n] for n in parts) == pytest.approx(1)
        expected = sum(np.sqrt(2 / np.pi * variance[n]) for n in parts) / release.total
        assert release.usefulness.expected_error[size] == pytest.approx(expected)


def test_nothing_is_expected_of_a_held_release() -> None:
    stream = phd.TrackingStream(SQUARE, 1.0, phd.Event(), start_after=3, noise=phd.Simulation(seed=1))
    held = stream.update([(0.5, 0.5)])
    assert held.usefulness == Usefulness({}, {})
    assert held.usefulness.warning == ""


@pytest.mark.parametrize(
    "domain",
    [phd.Cube(3), phd.Globe(), phd.Hierarchy([("a", "b"), ("a", "c"), ("d", "e")])],
    ids=lambda domain: type(domain).__name__,
)
def test_every_kind_of_domain_can_say(domain: phd.Domain) -> None:
    stream = phd.PHDStream(domain, 1.0, phd.Event(), noise=phd.Simulation(seed=1))
    points = ["b"] * 500 if isinstance(domain, phd.Hierarchy) else np.full((500, domain.dimension), 0.4)
    said = stream.update(points).usefulness
    assert set(said.expected_error) == set(AREAS)
    assert all(0 <= error <= 2 for error in said.expected_error.values())
