"""Structured Streaming: which tick takes a row, each row once, and the releases of a plain local run, to the bit."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.engines.spark import SparkEngine, counting
from phdstream.engines.spark.arrivals import Arrivals
from phdstream.errors import InputError, StateError
from phdstream.io.sources.clock import Clock
from tests.engines.spark.arriving import HOUR, Live, arriving, coder, cut, local_releases, some, table, ticks_of
from tests.engines.spark.cluster import Cluster
from tests.engines.spark.streams import same
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
TICKS = 3


def frame_of(spark: Any, rows: dict[str, Any]) -> Any:
    return spark.createDataFrame(table(rows))


def assert_same(found: list[phd.Release], wanted: list[phd.Release]) -> None:
    assert [release.tick for release in found] == [release.tick for release in wanted]
    assert all(same(one, other) for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize("late", ["refuse", "next"])
def test_files_in_any_cut_and_order_give_the_releases_of_a_local_run(spark: Any, tmp_path: Path, late: str) -> None:
    rows = arriving()
    ticks = ticks_of(rows, late)
    wanted = local_releases(rows, ticks, TICKS)
    in_time = (rows["own"] >= 0) & (ticks == rows["own"] // HOUR + 1)
    assert in_time.sum() > 100
    assert (~in_time & (rows["own"] >= 0)).sum() > 20

    with Live(spark, tmp_path / "as they come", late=late) as live:
        live.start()
        pieces = cut(rows, [0.5, 1.0, 7 / 6, 2.0, 13 / 6, 19 / 6])
        for number, (piece, hours) in enumerate(zip(pieces[:6], [0.5, 1, 7 / 6, 2, 13 / 6, 19 / 6], strict=True)):
            live.drop(piece, f"{number}")
            live.release(hours)  # at once: it must wait until the file is read
        assert_same(live.published, wanted)
        assert not live.engine.files.names("intake/batch-0000000000")

    with Live(spark, tmp_path / "all before", late=late) as live:
        order = np.random.default_rng(2).permutation(len(ticks))
        for number, which in enumerate(np.array_split(order, 2)):
            live.drop(some(rows, which), f"{number}")
        live.start()
        assert live.release(19 / 6) == [1, 2, 3]
        assert_same(live.published, wanted)


def test_one_row_more_changes_only_what_its_own_tick_takes(spark: Any, tmp_path: Path) -> None:
    rows = arriving()
    for number, late in enumerate(["refuse", "next"]):
        ticks = ticks_of(rows, late)
        (gone,) = np.flatnonzero(ticks == 2)[:1]
        found = []
        for kept in (np.arange(len(ticks)), np.delete(np.arange(len(ticks)), gone)):
            engine = SparkEngine(spark, str(tmp_path / f"{number}-{len(kept)}"))
            arrivals = Arrivals(engine, coder(), late)
            arrivals.write(frame_of(spark, some(rows, kept)), 0, 0, 0)
            found.append([sorted(map(tuple, arrivals.rows(tick, 0).collect())) for tick in range(1, 6)])
        more, fewer = found
        assert [len(tick) for tick in more] == [len(tick) + (number == 1) for number, tick in enumerate(fewer)]
        assert more[:1] + more[2:] == fewer[:1] + fewer[2:]
        assert [len(tick) for tick in more[:2]] == [
            (phd.Box([(0, 1), (0, 1)], depth=12).encode(rows["x"])[1] & (ticks == tick)).sum() for tick in (1, 2)
        ]


def test_users_are_bounded_across_ticks_and_batches(spark: Any, tmp_path: Path) -> None:
    rows, unit = arriving(), phd.User(inserts=3, deletes=1)
    with Live(spark, tmp_path, unit=unit) as live:
        live.start()
        hours = [0.7, 1.5, 13 / 6, 19 / 6]
        for number, piece in enumerate(cut(rows, hours[:-1])):
            live.drop(piece, f"{number}")
            live.release(hours[number])
        assert_same(live.published, local_releases(rows, ticks_of(rows, "refuse"), TICKS, unit))
    assert not same(live.published[-1], local_releases(rows, ticks_of(rows, "refuse"), TICKS)[-1])


def test_a_batch_is_counted_once_however_often_it_is_handed_over(spark: Any, tmp_path: Path) -> None:
    rows = arriving()
    other = some(rows, slice(0, 60))
    with Live(spark, tmp_path) as live:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        try:  # an attempt that was not noted leaves rows of other ticks behind
            live.live._arrivals.write(frame_of(spark, other | {"own": other["own"] * 0 + 2 * HOUR}), 0, 0, 0)
            live.drop(rows, "0")
            live.start()
            live.release(7 / 6)
            for batch in (0, 0):
                live.live.accept(frame_of(spark, rows), batch)
            live.release(19 / 6)
        finally:
            spark.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
        assert_same(live.published, local_releases(rows, ticks_of(rows, "refuse"), TICKS))


def test_a_worker_is_killed_while_a_batch_is_taken(
    spark: Any, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, replace, killed = arriving(), counting._Files.replace, list[str]()

    def writing(files: Any, name: str, frame: Any, by: str | None = None) -> None:
        if not name.startswith("intake/") or killed:
            return replace(files, name, frame, by)
        killed.append(name)
        cluster.kill_in_the_middle(tmp_path / "stalled", frame, lambda frame: replace(files, name, frame, by))
        return None

    monkeypatch.setattr(counting._Files, "replace", writing)
    with Live(spark, tmp_path) as live:
        live.drop(rows, "0")
        live.start()
        assert live.release(19 / 6) == [1, 2, 3]
        assert_same(live.published, local_releases(rows, ticks_of(rows, "refuse"), TICKS))
    assert len(killed) == 1


def test_a_checkpoint_that_does_not_belong_is_refused(spark: Any, tmp_path: Path) -> None:
    with Live(spark, tmp_path) as live:
        live.drop(arriving(40), "0")
        live.start()
        live.release(7 / 6)
    checkpoint, kept = tmp_path / "storage" / "checkpoint", tmp_path / "kept"
    shutil.copytree(checkpoint, kept)
    shutil.rmtree(checkpoint)
    with pytest.raises(StateError, match="gone or older"):
        Live(spark, tmp_path)
    shutil.copytree(kept, checkpoint)
    (checkpoint / "offsets" / "0").unlink()
    with pytest.raises(StateError, match="gone or older"):
        Live(spark, tmp_path)
    shutil.copyfile(kept / "offsets" / "0", checkpoint / "offsets" / "7")
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(StateError, match="of another stream"):
        Live(spark, tmp_path)


def test_without_a_column_the_first_beginning_of_its_batch_is_when_a_row_arrived(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = arriving()
    frame = frame_of(spark, rows)
    write = Arrivals.write

    def fail(*_: Any) -> None:
        raise OSError("no room")

    with Live(spark, tmp_path, arrived=False) as live:
        live.now = live.now.replace(hour=1)  # tick 1 is open until 01:10
        monkeypatch.setattr(Arrivals, "write", fail)
        with pytest.raises(OSError, match="no room"):
            live.live.accept(frame, 0)
    monkeypatch.setattr(Arrivals, "write", write)
    with Live(spark, tmp_path, arrived=False) as live:
        live.now = live.now.replace(hour=5)
        live.live.accept(frame, 0)
        live.live.accept(frame_of(spark, some(rows, slice(0, 50))), 1)  # begun when all was over
        taken = [live.live._arrivals.rows(tick, 1).count() for tick in (1, 2, 3)]
    inside = phd.Box([(0, 1), (0, 1)], depth=12).encode(rows["x"])[1]
    assert taken == [int((inside & (rows["own"] // HOUR + 1 == tick)).sum()) for tick in (1, 2, 3)]


def test_a_batch_taken_up_again_is_not_all_that_has_arrived(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was planned before the crash: what came since then, in time, is read before the tick is released."""
    rows = arriving()
    first, second, _ = cut(rows, [0.5, 7 / 6])
    write = Arrivals.write
    monkeypatch.setattr(Arrivals, "write", lambda *_: 1 / 0)
    with Live(spark, tmp_path) as live:
        live.drop(first, "0")
        query = live.start()
        wait_until(lambda: query.exception() is not None, 600)
    monkeypatch.setattr(Arrivals, "write", write)
    assert (tmp_path / "storage" / "checkpoint" / "offsets" / "0").exists()
    with Live(spark, tmp_path) as live:
        live.drop(second, "1")
        live.start()
        assert live.release(7 / 6) == [1]
        assert_same(live.published, local_releases(rows, ticks_of(rows, "refuse"), 1))


def test_what_fails_is_said_and_loses_nothing(spark: Any, tmp_path: Path) -> None:
    rows = arriving(120)
    wanted = local_releases(rows, ticks_of(rows, "refuse"), 2)
    with Live(spark, tmp_path) as live:
        with pytest.raises(StateError, match="no query"):
            live.release(7 / 6)
        live.drop(rows, "0")
        live.start()
        publish, live.live._publish = live.live._publish, lambda release: 1 / 0
        with pytest.raises(ZeroDivisionError):
            live.release(13 / 6)
        live.live._publish = publish
        assert live.release(13 / 6) == [2]
        assert_same(live.published, wanted)
        (tmp_path / "in" / "1.parquet").write_bytes(b"not Parquet")
        with pytest.raises(StateError, match="has failed"):
            live.release(19 / 6)
        live.live.stop()
        with pytest.raises(StateError, match="stopped"):
            live.live.accept(frame_of(spark, rows), 9)
    with pytest.raises(InputError, match="late must be"):
        Arrivals(live.engine, coder(), "never")
    naive = replace(coder(), clock=Clock.between(live.now.replace(tzinfo=None), None, "1h"))
    with pytest.raises(InputError, match="time zone"):
        Arrivals(live.engine, naive, "next")


def test_rows_that_do_not_say_when_they_arrived_and_times_at_the_end_of_time(spark: Any, tmp_path: Path) -> None:
    frame = frame_of(spark, some(arriving(), slice(0, 3)))
    odd = frame.limit(1).selectExpr("x0", "x1", "timestamp_micros(-9223372036854775808L) as when", "sign", "who",
                                    "timestamp_micros(-9223372036854775808L) as arrived")  # fmt: skip
    unsaid = frame.limit(1).selectExpr("x0", "x1", "when", "sign", "who", "cast(null as timestamp) as arrived")
    engine = SparkEngine(spark, str(tmp_path))
    Arrivals(engine, coder(), "next").write(odd.unionAll(unsaid), 0, 0, 0)
    assert not [name for name in engine.files.names("intake/batch-0000000000") if name.startswith("tick=")]
    with pytest.raises(Exception, match="does not say when"):
        Arrivals(engine, coder(drop_bad=False), "next").write(unsaid, 1, 0, 0)


def test_a_query_that_reads_what_there_is_releases_what_was_over_when_it_began(spark: Any, tmp_path: Path) -> None:
    rows = arriving()
    early, later = cut(rows, [7 / 6])
    with Live(spark, tmp_path) as live:
        live.drop(early, "0")
        live.now = live.now.replace(hour=1, minute=10)
        live.start(availableNow=True).awaitTermination()
        live.drop(later, "1")  # in time for tick 2, and not read
        assert live.release(19 / 6) == [1]
        live.start(availableNow=True).awaitTermination()
        assert live.release(19 / 6) == [2, 3]
        assert_same(live.published, local_releases(rows, ticks_of(rows, "refuse"), TICKS))
