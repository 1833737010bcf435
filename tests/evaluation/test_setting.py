"""The true data: live points under deletes, the modified stream, queries that meet the domain."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import phdstream as phd
from phdstream.errors import InputError
from phdstream.evaluation import QUERY_NUMBERS, domain_queries, random_rectangles, read_experiment
from phdstream.evaluation.setting import Setting, _on_lines, load_setting
from phdstream.evaluation.true_stream import LivePoints, TrueStream
from phdstream.streams.intake import EncodedEvents
from tests.evaluation.experiments import OWN, small, write_events

NUMBERS = {"small": 60, "medium": 40, "large": 20}


def rows(points: np.ndarray) -> Counter[tuple[float, ...]]:
    return Counter(map(tuple, points.tolist()))


events = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.sampled_from([1, -1])), max_size=40)


@given(events, st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_moments_agree_with_a_plain_multiset(
    given_events: list[tuple[int, int, int]], start: int, every: int, merge: bool
) -> None:
    tick, place, sign = np.array(given_events, dtype=np.int64).reshape(-1, 3).T
    truth = TrueStream.from_events(tick, np.column_stack([place, -place]).astype(float), sign, ticks=6)
    live: list[Counter[tuple[float, ...]]] = [Counter()]
    for t in range(1, 7):
        now = Counter(live[-1])
        now.update((float(p), float(-p)) for k, p, s in given_events if k == t and s > 0)
        now.subtract((float(p), float(-p)) for k, p, s in given_events if k == t and s < 0)
        live.append(+now)
    moments = list(truth.moments(start, every, merge))
    measured = [m for m in moments if m.live is not None]
    assert [m.tick for m in measured] == sorted({*range(start, 7, every), 6})
    assert all(rows(m.live) == live[m.tick] for m in measured if m.live is not None)
    assert rows(np.asarray(moments[0].inserts)) == live[start]
    handed = sum(len(m.inserts) for m in moments[1:])
    assert handed == sum(1 for k, _, s in given_events if k > start and s > 0)


def test_a_point_that_is_there_twice_is_deleted_once() -> None:
    live = LivePoints(np.array([[0.0, 0.0], [1.0, 1.0]]))
    live.update(np.array([0, 0, 1]), np.array([0, 1, 1]))
    assert live.points().tolist() == [[0.0, 0.0]]


def test_totals_over_all_ticks() -> None:
    place = np.array([[0.0, 0.0], [1.0, 1.0]])
    tick, at, sign = np.array([1, 1, 3, 3, 4]), np.array([0, 1, 0, 1, 1]), np.array([1, 1, 1, -1, -1])
    come, gone, live = TrueStream.from_events(tick, place[at], sign, ticks=4).totals()
    assert come.tolist() == [0, 2, 2, 3, 3]
    assert gone.tolist() == [0, 0, 0, 1, 2]
    assert live.tolist() == [0, 2, 2, 2, 2]  # the last delete is of a point that is not there


def test_circles_come_in_batches_and_end_on_the_inner_one() -> None:
    truth = load_setting(small()).truth
    assert set(np.diff(truth.ends)) == {100} or np.diff(truth.ends).mean() == pytest.approx(100, abs=10)
    last = list(truth.moments(3, 1000))[-1].live
    assert last is not None
    assert len(last) == 600


def test_the_start_is_a_share_of_the_events() -> None:
    setting = load_setting(small())
    assert setting.truth.ends[setting.start_tick(0.2)] == pytest.approx(0.2 * setting.truth.ends[-1], abs=100)
    assert setting.start_tick(7) == 7


def test_signs_in_a_file_delete(tmp_path: Path) -> None:
    path = write_events(tmp_path / "events.parquet", days=2, per_day=3)
    table = pyarrow.parquet.read_table(path)
    gone = table.slice(0, 2).set_column(0, "time", table["time"].slice(3, 2))
    both = pa.concat_tables([table, gone]).append_column("sign", pa.array([1] * 6 + [-1] * 2))
    pyarrow.parquet.write_table(both, path)
    spec = OWN | {"start_after": [1], "data": OWN["data"] | {"sign": "sign", "end": np.datetime64("2020-01-03").item()}}
    first, second = load_setting(read_experiment(spec, tmp_path)).truth.moments(1, 1)
    assert first.live is not None
    assert second.live is not None
    assert (len(first.live), len(second.live), len(second.deletes)) == (3, 4, 2)


def test_thinning_keeps_so_many_events(tmp_path: Path) -> None:
    write_events(tmp_path / "events.parquet")
    spec = OWN | {"data": OWN["data"] | {"points": 100}}
    assert load_setting(read_experiment(spec, tmp_path)).truth.place.size == 100


def test_on_a_box_the_queries_are_all_random_rectangles() -> None:
    found = domain_queries(phd.Box([(0, 2), (0, 1)]), QUERY_NUMBERS, seed=3)
    assert {size: len(rectangles) for size, rectangles in found.items()} == QUERY_NUMBERS
    for i, (size, number) in enumerate(QUERY_NUMBERS.items()):
        expected = random_rectangles(np.array([[0, 2], [0, 1]]), number, size, seed=3 + i)
        np.testing.assert_array_equal(found[size], expected)


def test_queries_meet_regions_and_networks() -> None:
    triangle = phd.Region(shapely.Polygon([(0, 0), (1, 0), (0, 1)]), depth=8)
    street = phd.Network([shapely.LineString([(0, 0), (100, 0), (100, 60)])], snap=5)
    for domain, shape in ((triangle, triangle.outline()), (street, street.boundary())):
        for size, rectangles in domain_queries(domain, NUMBERS, seed=1).items():
            assert len(rectangles) == NUMBERS[size]
            assert shapely.intersects(shape, shapely.box(*rectangles.T)).all()


def test_no_query_intersects() -> None:
    specks = phd.Region([shapely.box(0, 0, 1e-7, 1e-7), shapely.box(1, 1, 1 + 1e-7, 1 + 1e-7)], depth=4)
    with pytest.raises(InputError, match="no small rectangle intersects the domain"):
        domain_queries(specks, NUMBERS, seed=1)


def test_true_points_are_put_on_the_lines() -> None:
    street = phd.Network([shapely.LineString([(500, 500), (1000, 500)])], snap=50)
    np.testing.assert_allclose(_on_lines(street, np.array([[600.0, 510.0]])), [[600.0, 500.0]])


def test_events_as_codes_are_those_of_the_points_inside() -> None:
    """What a trial hands over is what the domain would make of the points; those outside count nowhere."""
    points = np.array([[0.1, 0.1], [0.9, 0.2], [3.0, 0.5], [0.1, 0.1]])
    truth = TrueStream.from_events(np.array([1, 1, 2, 3]), points, np.array([1, 1, 1, -1]), ticks=3)
    setting = Setting(phd.Box([(0, 1), (0, 1)]), truth, {"small": np.array([[0.0, 0.0, 0.5, 0.5]])})
    for plain, coded in zip(truth.moments(1, 1), truth.moments(1, 1, codes=setting.codes), strict=True):
        for events, codes in ((plain.inserts, coded.inserts), (plain.deletes, coded.deletes)):
            found, inside = setting.domain.encode(events)
            assert isinstance(codes, EncodedEvents)
            assert codes.codes.tolist() == found[inside].tolist()
        assert coded.live is not None
        assert setting.true_counts(coded.tick, coded.live).tolist() == [0 if coded.tick == 3 else 1]
    assert setting.true_counts(1, points[:0]).tolist() == [1]  # counted before
