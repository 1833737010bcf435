"""Neighbouring inputs, posted in every order and batching: the admitted events differ by that one alone.

A neighbour has one event more. What is admitted is read from the journal, and, with users, also after the bound.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phdstream.domains import Box
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.reading import Reading
from phdstream.service.bodies import ARROW, NDJSON, BodyReader
from tests.service.api.serving import USERS, Served, arrow, ndjson, row
from tests.thorough import cases

SCHEMA = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("time", pa.string())])
WITH_USERS = SCHEMA.append(pa.field("sign", pa.int8())).append(pa.field("who", pa.string()))
Row = dict[str, Any]


@pytest.fixture(scope="module", params=["events", "users"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A stream whose ticks are never released, so that all that was admitted waits in the journal."""
    more: dict[str, Any] = USERS if request.param == "users" else {}
    service = 'public = true\nahead = "50s"\nrate = 1000000'
    one = Served(tmp_path_factory.mktemp("neighbours"), service=service, **more)
    yield one
    one.close()


def admitted(one: Served, deliveries: list[list[Row]], kinds: list[str]) -> Counter[tuple[Any, ...]]:
    """Post deliveries to an empty journal; return the admitted events."""
    one.service._journal.purge(10**6)
    schema = WITH_USERS if one.service.unit else SCHEMA
    for rows, kind in zip(deliveries, kinds, strict=True):
        body = arrow(pa.Table.from_pylist(rows, schema)) if kind == ARROW else ndjson(rows)
        assert one.post(body, kind=kind).status_code in (200, 422)
    return one.journal()


@st.composite
def batched(draw: st.DrawFn) -> tuple[list[Row], Row, int]:
    """Draw rows, one more, and a seed for orders and batches."""
    one = st.builds(
        row,
        st.sampled_from([-100.0, -0.001, 0, 4, 5, 5, 9.999999, 10, 25, 49, 55, 61, 9999]),
        st.sampled_from([5.0, 5.0, 0.0, 10.0, 1e300, float("nan"), -1.0]),
        st.sampled_from([45.0, 45.0, 40.0, 50.0]),
        sign=st.sampled_from([1, 1, 1, -1, 0]),
        who=st.sampled_from(["ann", "bob", ""]),
    )
    return draw(st.lists(one, max_size=12)), draw(one), draw(st.integers(0, 10**6))


def split(rows: list[Row], rng: random.Random) -> tuple[list[list[Row]], list[str]]:
    """Return the rows in some order and some batches, each of some kind."""
    rows, made = rng.sample(rows, len(rows)), list[list[Row]]()
    while rows:
        size = rng.randint(1, len(rows))
        made.append(rows[:size])
        rows = rows[size:]
    return made, [rng.choice([NDJSON, ARROW]) for _ in made]


@settings(max_examples=cases(15, 400))
@given(batched())
def test_they_differ_by_that_one_alone(served: Served, drawn: tuple[list[Row], Row, int]) -> None:
    rows, extra, seed = drawn
    rng = random.Random(seed)
    without = admitted(served, *split(rows, rng))
    alone = admitted(served, [[extra]], [rng.choice([NDJSON, ARROW])])
    assert alone.total() <= 1
    for _ in range(2):
        assert admitted(served, *split([*rows, extra], rng)) == without + alone
    assert admitted(served, *split(rows, rng)) == without


@settings(max_examples=cases(8, 200))
@given(st.lists(st.sampled_from(["ann", "bob"]), min_size=1, max_size=9), st.integers(0, 10**6))
def test_with_users_the_same_events_are_within_the_bound(
    tmp_path_factory: pytest.TempPathFactory, who: list[str], seed: int
) -> None:
    """Which of a user's events are counted depends on their times, not on the order or the batches they came in."""
    rng = random.Random(seed)
    rows = [row(1 + i / 10, 1 + i, 45.0, who=name, sign=1) for i, name in enumerate(who)]
    one = _shared(tmp_path_factory)
    found = []
    for _ in range(3):
        admitted(one, *split(rows, rng))
        inserts, deletes = one.service._journal.events(1)
        found.append((inserts.codes.tolist(), inserts.users.ids.to_pylist()))
        assert not deletes.codes.size
    assert found[0] == found[1] == found[2]
    assert found[0][1] == [name.encode() for name in who]


_KEPT: list[Served] = []


def _shared(factory: pytest.TempPathFactory) -> Served:
    if not _KEPT:
        _KEPT.append(Served(factory.mktemp("bound"), service="public = true\nrate = 1000000", **dict[str, Any](USERS)))
    return _KEPT[0]


def teardown_module() -> None:
    for one in _KEPT:
        one.close()


def test_neighbours_across_a_closing_tick(tmp_path: Path) -> None:
    """An event is judged by when its own delivery arrived: the same with and without another before the close."""
    found = []
    for extra in ([], [row(5, 1.0, 41.0)]):
        one = Served(tmp_path / str(len(extra)), service='public = true\nlate = "next"')
        one.post([row(5), *extra])
        one.go_to(10)
        one.post([row(5), row(12)])
        found.append((one.journal(), one.get("/v1/ticks").json()))
        one.close()
    assert found[0] == found[1]
    assert sorted(found[0][0].values()) == [2]


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_text_that_is_not_utf8_spoils_its_own_row_only(kind: str) -> None:
    """As it does in NDJSON and in files; in an Arrow body it once refused all rows."""
    names = pa.array([b"ann", b"\xff\xfe", b"bob"], pa.binary()).view(pa.string())
    users = {
        "string": lambda: names,
        "large_string": lambda: pa.array([b"ann", b"\xff\xfe", b"bob"], pa.large_binary()).view(pa.large_string()),
        "string_view": lambda: names.cast(pa.binary()).cast(pa.binary_view()).view(pa.string_view()),
        "dictionary": lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), names),
    }[kind]()
    half, when = pa.array([0.5] * 3), pa.array(["2024-05-31T00:00:00Z"] * 3)
    batch = pa.RecordBatch.from_arrays([when, half, half, users], ["time", "x", "y", "who"])
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    clock = Clock(datetime(2024, 5, 31, tzinfo=UTC), timedelta(seconds=10), None)
    columns = Columns(("x", "y"), "time", None, "who")
    body = BodyReader(Box([(0, 1), (0, 1)]), clock, columns, Reading(zone=True)).read(ARROW, stream.getvalue())
    assert [(part.tick, part.number) for part in body.parts] == [(1, 2)]
    assert sum(body.rejected.values()) == 1
