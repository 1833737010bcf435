"""Hard streams: points lie in their domains, come and go when they should, and depend on the seed alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from benchmarks.hard_streams import BUILDING, NEVER, STREAMS, Batch, HardStream, hospitals, many

import phdstream as phd

LARGE = ("1 million", "5 million", "20 million")


def small(name: str) -> HardStream:
    """Return a stream; one of millions of points with a hundredth of a percent of them."""
    stream = STREAMS[name]
    if name in LARGE:
        return replace(stream, batches=partial(many, number=1000 * LARGE.index(name) + 1000, ticks=50))
    return stream


def batches(name: str, seed: int = 1) -> list[Batch]:
    return list(small(name).batches(seed))


def live(name: str) -> list[int]:
    """Return how many points there are at ticks 1, 2, ..."""
    found = batches(name)
    ticks = range(1, STREAMS[name].ticks + 1)
    return [sum(len(batch.points) for batch in found if batch.came <= tick < batch.goes) for tick in ticks]


@pytest.mark.parametrize("name", STREAMS)
def test_points_lie_in_the_domain_and_ticks_are_all_there(name: str) -> None:
    domain, found = STREAMS[name].domain(), batches(name)
    assert {batch.came for batch in found} == set(range(1, STREAMS[name].ticks + 1))
    for batch in found[:: len(found) // 5]:
        assert domain.encode(domain.points(batch.points))[1].all()


@pytest.mark.parametrize("name", STREAMS)
def test_a_seed_is_a_stream(name: str) -> None:
    first, same, other = (batches(name, seed)[3].points for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert first.shape != other.shape or bool((first != other).any())


@pytest.mark.parametrize("name", STREAMS)
def test_points_go_where_it_is_said_and_nowhere_else(name: str) -> None:
    found = batches(name)
    assert all(batch.came < batch.goes for batch in found)
    assert STREAMS[name].deletes == any(batch.goes < NEVER for batch in found)


@pytest.mark.parametrize("name", STREAMS)
def test_moments_are_ticks_of_the_stream(name: str) -> None:
    stream = STREAMS[name]
    assert all(1 <= tick <= stream.ticks for tick in stream.at)
    assert stream.moments <= stream.ticks
    assert stream.seeds >= 5


@pytest.mark.parametrize("size", ["small", "medium", "large"])
@pytest.mark.parametrize("name", STREAMS)
def test_queries_are_of_the_domain(name: str, size: str) -> None:
    stream, domain = STREAMS[name], STREAMS[name].domain()
    low, high = np.split(domain.bounds(np.array([1]))[0], 2)
    found = np.split(stream.queries(domain, {"small": 20, "medium": 20, "large": 20})[size], 2, axis=1)
    assert len(found[0]) >= 8
    assert bool((low <= found[0]).all() and (found[0] < found[1]).all() and (found[1] <= high).all())


@pytest.mark.parametrize(
    ("name", "number"), [("1 million", 10**6), ("5 million", 5 * 10**6), ("20 million", 2 * 10**7)]
)
def test_large_streams_are_as_large_as_they_are_called(name: str, number: int) -> None:
    made = STREAMS[name].batches
    assert isinstance(made, partial)
    assert made.keywords == {"number": number, "ticks": 50}
    assert len(next(iter(made(1))).points) * STREAMS[name].ticks == number


def test_shares_of_places_drift() -> None:
    def share(tick: int) -> float:
        points = list(many(1, 500_000, 50))[tick].points
        return float(np.mean(points[:, 0] < 0.5))

    still = abs(share(0) - share(1))
    assert abs(share(0) - share(25)) > 3 * still


def test_how_many_points_there_are() -> None:
    assert live("1,000 points")[-1] == 1000
    assert 200 < min(live("hourly")[24:]) < 500 < max(live("hourly")) < 1000
    for life in (2, 5, 30):
        assert live(f"moving, life {life}")[life - 1 :] == [500 * life] * (61 - life)
    assert live("alternating, life 3")[2:] == [3000] * 46
    assert live("jump")[19:] == [10_000] * 41
    assert live("bursts")[22:28] == [2250, 7250, 7250, 7250, 2250, 2250]


def test_at_a_jump_all_points_go_over() -> None:
    found = batches("jump")
    assert STREAMS["within 3 ticks of the jump"].at == (25, 26, 27, 28, 45, 46, 47, 48)
    for tick in (25, 45):
        gone = np.concatenate([batch.points for batch in found if batch.goes == tick])
        come = np.concatenate([batch.points for batch in found if batch.came == tick])
        assert len(gone) == len(come) == 10_000
        moved = {tuple(point) for point in (1 - gone).round(9).tolist()}
        assert (
            sum(tuple(point) in moved for point in come.round(9).tolist()) == 9500
        )  # the others lived their twenty ticks


def test_alternating_places_alternate() -> None:
    first, second = (batches("alternating")[i].points for i in (0, 1))
    assert abs(first.mean(axis=0) + second.mean(axis=0) - 1).max() < 0.05
    assert abs(first.mean(axis=0) - second.mean(axis=0)).max() > 0.1


def test_the_building_is_small_and_half_of_its_queries_are_near() -> None:
    stream = STREAMS["one building"]
    domain = stream.domain()
    assert isinstance(domain, phd.Box)
    assert 5 < (domain.cell_metres or 0) < 20
    assert np.diff(BUILDING, axis=1).max() < 0.0011
    for found in stream.queries(domain, {"small": 100, "medium": 100, "large": 100}).values():
        near = np.abs(found[:, :2] - BUILDING.mean(axis=1)).max(axis=1) < 0.01
        assert (near[:50].sum(), near[50:].sum()) == (0, 50)


def test_the_hierarchy_has_three_uneven_levels() -> None:
    sizes = [len(found) for found in STREAMS["hierarchy"].queries(hospitals(), dict.fromkeys("sml", 1)).values()]
    assert sizes == [len(hospitals().places), sizes[1], 8]
    assert sizes[0] > sizes[1] > 8
