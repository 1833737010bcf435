"""Spark against NumPy: the same codes, the same counts, the same releases, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
import shapely

import phdstream as phd
from phdstream.domains import ROOT, Domain
from phdstream.engines.spark import SparkEngine, counting, run_batch
from phdstream.engines.spark.counting import _SparkCounts
from phdstream.engines.spark.encoding import RowCoder
from phdstream.errors import InputError, StateError
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.reading import Reading
from phdstream.privacy import Simulation
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.engine import HeldEvents, LocalEngine, close_engine, open_engine
from tests.domains.test_every_domain import DOMAINS
from tests.engines.spark.cluster import Cluster
from tests.engines.spark.streams import CLOCK, TICKS, gathered, invented, same

pytestmark = pytest.mark.slow
SAID_IN_SQL = (
    "box", "box of three dimensions", "islands", "islands by quarters", "islands in degrees", "globe",
)  # fmt: skip
METHODS = {"tracking": phd.TrackingStream, "paper": phd.PHDStream}


@pytest.mark.parametrize("domain_name", DOMAINS)
def test_every_domain_and_both_methods_are_equal_to_the_bit(spark: Any, domain_name: str, tmp_path: Path) -> None:
    events = invented(tmp_path, DOMAINS[domain_name]())
    for name, method in METHODS.items():
        ours, theirs = (method(events.domain, 1.0, phd.Event(), noise=Simulation(5)) for _ in range(2))
        engine, rows = SparkEngine(spark, str(tmp_path / name)), gathered(events)
        frame = spark.read.parquet(str(events.path))
        assert events.coder.in_sql(frame) == (domain_name in SAID_IN_SQL)
        for release in run_batch(ours, engine, frame, events.coder, TICKS):
            assert same(release, theirs.update(*rows.tick(release.tick)))
        assert ours.tick == TICKS


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_users_are_bounded_as_they_are_here(spark: Any, method: Any, tmp_path: Path) -> None:
    unit = phd.User(inserts=4, deletes=1)
    events = invented(tmp_path, DOMAINS["box"](), users=True, ticks=3)
    ours, theirs = (method(events.domain, 2.0, unit, noise=Simulation(5)) for _ in range(2))
    rows, frame = gathered(events, 3), spark.read.parquet(str(events.path))
    for release in run_batch(ours, SparkEngine(spark, str(tmp_path / "storage")), frame, events.coder, 3):
        assert same(release, theirs.update(*rows.tick(release.tick)))
    assert theirs.private_tally.over_bound > 100


def edges_of(domain: Domain) -> np.ndarray:
    """Return corners of cells of all sizes, and of what is cut away."""
    corners = []
    for level in range(1, domain.depth + 1, 3):
        nodes = np.unique(
            domain.nodes_of(domain.encode(domain.sample(np.array([ROOT]), np.array([300]), level))[0], level)
        )
        box = domain.bounds(nodes)
        corners += [box[:, [0, 1]], box[:, [2, 3]], box[:, [0, 3]]]
    if isinstance(domain, phd.Region):
        corners.append(shapely.get_coordinates(domain.outline()))
    return np.concatenate(corners)


@pytest.mark.parametrize("name", ["box", "globe", "islands", "islands in degrees"])
def test_codes_at_the_edges_of_cells(spark: Any, name: str) -> None:
    """Points on, just below and just above every kind of edge: rounding must not tell the two apart."""
    domain = DOMAINS[name]()
    edges, rng = edges_of(domain), np.random.default_rng(1)
    worldwide = rng.uniform((-200, -100), (200, 100), (5000, 2))
    near = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), worldwide])
    quarters = np.array([(x, y) for x in range(-180, 181, 45) for y in range(-90, 91, 45)])
    near = np.concatenate([near, quarters, [[np.inf, 40.7], [-np.inf, 40.7], [1e300, 41.0], [0, -0.0]]])
    frame = spark.createDataFrame(
        pa.table({"x": near[:, 0], "y": near[:, 1], "n": np.arange(len(near), dtype=np.int32)})
    )
    frame = frame.selectExpr("x", "y", "cast(date_add(date'2026-01-01', n) as timestamp_ntz) as t")
    coder = RowCoder(domain, CLOCK, Columns(("x", "y"), "t"))
    assert coder.in_sql(frame)
    found = coder.coded(frame).toArrow().sort_by("tick")
    codes, inside = domain.encode(near)
    assert 100 < inside.sum() < len(near)
    np.testing.assert_array_equal(found["tick"].to_numpy(), np.flatnonzero(inside) + 1)
    np.testing.assert_array_equal(found["code"].to_numpy(), codes[inside])


def test_counts_of_disjoint_nodes(spark: Any, tmp_path: Path) -> None:
    rng, bits = np.random.default_rng(2), 40
    parts = [rng.integers(0, 1 << bits, 5000) >> rng.integers(0, 30, 5000) for _ in range(3)]
    here, there = LocalEngine("here"), SparkEngine(spark, str(tmp_path))
    names = [f"part-{number}" for number in range(3)]
    for engine in (here, there):
        for name, codes in zip(names, parts, strict=True):
            assert engine.hold(name, codes).parts == (name,)
    mixed = np.array([1 << 3 | 7, 1 << 2 | 2, *((1 << 12) + np.arange(100))])
    for nodes in (np.array([1]), (1 << 10) + np.arange(1 << 10), mixed, np.zeros(0, np.int64)):
        exact = CodeCounts(np.concatenate(parts), bits).within(nodes)
        np.testing.assert_array_equal(here.counts(names, bits).within(nodes), exact)
        np.testing.assert_array_equal(there.counts(names, bits).within(nodes), exact)
    assert there.counts(names, bits).within(np.array([1])).tolist() == [15000]
    with pytest.raises(StateError, match="overlap"):
        there.counts(names, bits).within(np.array([1, 2]))
    there.keep_only(names[:1])
    with pytest.raises(StateError, match="gone"):
        there.counts(names, bits)


def test_what_a_dead_drivers_task_still_writes_is_not_counted(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of an earlier attempt commits its file while it is written anew, as a stalled executor might."""
    names = [uuid4() for _ in range(2)]
    monkeypatch.setattr(counting, "uuid4", iter(names).__next__)
    engine, columns = SparkEngine(spark, str(tmp_path)), {"code": np.arange(1000), "number": np.ones(1000, np.int64)}
    frame = spark.createDataFrame(pa.table(columns)).repartition(2)
    engine.files.replace("parts/a", frame)
    file = next(iter((tmp_path / "parts" / "a").glob("*.parquet"))).read_bytes()
    targets = [str(tmp_path / place) for place in ("parts/a", f"aside/{names[0].hex}")]

    def stalled(batches: Any) -> Any:
        for target in targets:
            task = Path(target, "_temporary", "0", "task_202601010000000000000000_0001_m_000099")
            task.mkdir(parents=True, exist_ok=True)
            (task / "part-00099-stalled.parquet").write_bytes(file)
        yield from batches

    engine.files.replace("parts/a", frame.mapInArrow(stalled, "code long, number long"))
    assert engine.counts(["a"], 40).within(np.array([1])).tolist() == [1000]
    engine.keep_only(["a"])
    assert engine.files.names("aside") == []


@pytest.mark.parametrize("setting", ["spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"])
def test_a_session_that_passes_over_files_is_refused(spark: Any, tmp_path: Path, setting: str) -> None:
    spark.conf.set(setting, "true")
    try:
        with pytest.raises(InputError, match=setting):
            SparkEngine(spark, str(tmp_path))
    finally:
        spark.conf.set(setting, "false")


def test_a_bad_row_stops_or_is_left_out(spark: Any) -> None:
    rows = [(0.5, 0.5, 1), (None, 0.5, 1), (float("nan"), 0.5, 1), (0.5, 0.5, 0), (0.25, 0.5, -1)]
    frame = spark.createDataFrame(rows, "x double, y double, s int")
    frame = frame.selectExpr("x", "y", "s", "cast(timestamp'2026-01-01 10:00:00' as timestamp_ntz) as t")
    box = phd.Box([(0, 1), (0, 1)], depth=8)
    columns = Columns(("x", "y"), "t", "s")
    dropping, stopping = (RowCoder(box, CLOCK, columns, Reading(drop_bad=drop)) for drop in (True, False))
    assert dropping.coded(frame).count() == 2
    with pytest.raises(Exception, match="a row cannot be read") as error:
        stopping.coded(frame).count()
    assert "0.25" not in str(error.value)


def test_held_events_are_checked() -> None:
    box, engine = phd.Box([(0, 1), (0, 1)], depth=8), LocalEngine("checked")
    held = engine.hold("a", np.array([1, 2]))
    open_engine(engine)
    try:
        phd.TrackingStream(box, 1.0, phd.Event()).update(held)
        with pytest.raises(InputError, match="bounded"):
            phd.TrackingStream(box, 1.0, phd.User(inserts=2, deletes=2)).update(held)
        with pytest.raises(InputError, match="without deletes"):
            phd.TrackingStream(box, 1.0, phd.Event(), insert_only=True).update(held, held)
        with pytest.raises(InputError, match="both alike"):
            phd.TrackingStream(box, 1.0, phd.Event()).update(held, [(0.5, 0.5)])
    finally:
        close_engine(engine)
    with pytest.raises(StateError, match="not open here"):
        phd.TrackingStream(box, 1.0, phd.Event()).update(HeldEvents("elsewhere", ("a",)))


def test_an_open_block_stays_on_the_cluster_and_is_forgotten_after(spark: Any, tmp_path: Path) -> None:
    """The saved state names parts and holds no code; a stream goes on from it, and what was counted is deleted."""
    ticks = 6
    events = invented(tmp_path, DOMAINS["box"](), 3000, ticks=ticks)
    frame, rows = spark.read.parquet(str(events.path)), gathered(events, ticks)
    engine = SparkEngine(spark, str(tmp_path / "storage"))
    stream, theirs = (phd.TrackingStream(events.domain, 1.0, phd.Event(), noise=Simulation(5)) for _ in range(2))
    held = set()
    for last in range(1, ticks + 1):
        (release,) = run_batch(stream, engine, frame, events.coder, last)
        assert same(release, theirs.update(*rows.tick(last)))
        stream.save(tmp_path / "state")
        held |= stream.held_parts(engine.name)
        assert set(engine.files.names("parts")) == stream.held_parts(engine.name)
        assert all(not array.size for name, array in stream.to_state()[1].items() if name.endswith(".codes"))
        stream = phd.TrackingStream.load(tmp_path / "state")
    assert held


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_only_the_counts_that_were_asked_for_reach_the_driver(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: Any
) -> None:
    """One number for each node that holds an event, question by question; no row, and no code, is ever collected."""
    events = invented(tmp_path, DOMAINS["box"](), 4000)
    frame, engine = spark.read.parquet(str(events.path)), SparkEngine(spark, str(tmp_path / "storage"))
    within, fetch, answers, fetched = _SparkCounts.within, type(frame).toArrow, list[int](), list[int]()

    def asked(counts: Any, nodes: Any, bits: Any = None) -> Any:
        found = within(counts, nodes, bits)
        answers.append(int(np.count_nonzero(found)))
        return found

    def fetching(some: Any) -> Any:
        fetched.append(len(table := fetch(some)))
        return table

    monkeypatch.setattr(_SparkCounts, "within", asked)
    monkeypatch.setattr(type(frame), "toArrow", fetching)
    for name in ("collect", "toPandas", "toLocalIterator", "take", "head"):
        monkeypatch.setattr(type(frame), name, lambda *_: pytest.fail("rows were collected"))
    stream = method(events.domain, 1.0, phd.Event(), noise=Simulation(5))
    for release in run_batch(stream, engine, frame, events.coder, TICKS):
        assert release.tick
    assert fetched == answers
    assert len(fetched) > 3
    assert max(fetched) > 10


def test_a_worker_is_killed_in_mid_tick(
    spark: Any, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a task: while rows are placed, held, and counted. What was lost is done again, none twice."""
    events = invented(tmp_path, phd.Box([(0, 1), (0, 1)], depth=14), 20_000, users=True)
    ours, theirs = (phd.TrackingStream(events.domain, 2.0, phd.User(5, 2), noise=Simulation(5)) for _ in range(2))
    replace, within, killed = counting._Files.replace, _SparkCounts.within, list[str]()
    wanted = ["gathered", "users", "parts", "counting 2"]

    def killing(name: str, frame: Any, work: Any) -> Any:
        if name in killed or name not in wanted:
            return work(frame)
        killed.append(name)
        return cluster.kill_in_the_middle(tmp_path / f"stalled {len(killed)}", frame, work)

    def writing(files: Any, name: str, frame: Any, by: str | None = None) -> None:
        killing(name.partition("/")[0], frame, lambda stalled: replace(files, name, stalled, by))

    def counted(counts: Any, nodes: Any, bits: Any = None) -> Any:
        name = f"counting {min(len(nodes), 2)}"
        return killing(name, counts._frame, lambda stalled: within(_SparkCounts(stalled, counts._bits), nodes, bits))

    monkeypatch.setattr(counting._Files, "replace", writing)
    monkeypatch.setattr(_SparkCounts, "within", counted)
    rows = gathered(events)
    for release in run_batch(ours, SparkEngine(spark, str(tmp_path)), spark.read.parquet(str(events.path)),
                             events.coder, TICKS):  # fmt: skip
        assert same(release, theirs.update(*rows.tick(release.tick)))
    assert ours.tick == TICKS
    assert killed == wanted
