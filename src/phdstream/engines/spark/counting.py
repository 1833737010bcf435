"""`SparkEngine`: events as Parquet files of codes and how many there are of each, counted where they lie. **Private.**

A part is a folder of the engine's storage, with two columns: a code, and how many events have it. It is written once,
whole (a folder without Spark's mark of success is not there). To count disjoint nodes, every partition of the parts is
searched with NumPy for the ranges of codes that the nodes are; partitions' counts are added up on the cluster; and only
the counts of the nodes that were asked for, zeros left out, reach the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from phdstream.arrays import Ints
from phdstream.domains.prefixes import code_range
from phdstream.errors import StateError
from phdstream.streams.engine import HeldEvents

__all__ = ["SparkEngine"]

_PARTS, _ASIDE = "parts", "aside"
_DONE = "_SUCCESS"


class SparkEngine:
    """Holds and counts events on a Spark cluster. An `Engine`.

    ``storage`` is a folder that driver and workers all reach, by any address that Hadoop knows. It is private data.
    """

    def __init__(self, session: Any, storage: str) -> None:
        from phdstream.engines.spark.session import check_session

        check_session(session)
        self.session, self.storage = session, str(storage).rstrip("/")
        self.files = _Files(session, self.storage)

    @property
    def name(self) -> str:
        """Where the parts are."""
        return f"spark:{self.storage}"

    def path(self, part: str) -> str:
        """Return the folder of a part."""
        return f"{self.storage}/{_PARTS}/{part}"

    def hold(self, part: str, codes: Ints) -> HeldEvents:
        """Take over some events as a part; one of the same name is replaced."""
        frame = self.session.createDataFrame(pa.table({"code": pa.array(codes, pa.int64())}))
        return self.hold_frame(part, frame)

    def hold_frame(self, part: str, frame: Any, bound: int | None = None) -> HeldEvents:
        """Take over the events of a frame with a column ``code`` as a part; one of the same name is replaced."""
        from pyspark.sql import functions as sql

        counted = frame.groupBy("code").agg(sql.count("*").alias("number"))
        self.files.replace(f"{_PARTS}/{part}", counted)
        return HeldEvents(self.name, (part,), bound)

    def counts(self, parts: Sequence[str], total_bits: int) -> _SparkCounts:
        """Return exact counts of all events of some parts together."""
        for part in parts:
            if not self.files.exists(f"{_PARTS}/{part}/{_DONE}"):
                raise StateError(
                    f"{self.path(part)}, which holds events of the open block, is gone or not whole. Restore it."
                )
        frame = self.session.read.schema("code long, number long").parquet(*map(self.path, parts)) if parts else None
        return _SparkCounts(frame, total_bits)

    def keep_only(self, parts: Iterable[str]) -> None:
        """Forget all parts but these, for good."""
        kept = set(parts)
        for part in self.files.names(_PARTS):
            if part not in kept:
                self.files.delete(f"{_PARTS}/{part}")
        self.files.delete(_ASIDE)


class _SparkCounts:
    """Exact counts of a frame of codes and numbers, by one job for each question. Private."""

    def __init__(self, frame: Any | None, total_bits: int) -> None:
        self._frame, self._bits = frame, total_bits

    def within(self, nodes: Ints, bits: int | None = None) -> Ints:
        """Return how many events lie in each node. They must be disjoint."""
        counts: Ints = np.zeros(nodes.size, dtype=np.int64)
        if self._frame is None or not nodes.size:
            return counts
        first, past = code_range(nodes, self._bits, bits)
        order = np.argsort(first, kind="stable")
        if (past[order][:-1] > first[order][1:]).any():
            raise StateError("an engine was asked for nodes that overlap: a bug, please report it.")
        schema = "node long, number long"
        found = self._frame.mapInArrow(_count_ranges(first[order], past[order]), schema).groupBy("node").sum("number")
        table = found.toArrow()
        counts[order[table.column(0).to_numpy()]] = table.column(1).to_numpy()
        return counts


def _count_ranges(first: Ints, past: Ints) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what counts, in the batches of one partition, the events in each of some ranges in order."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        totals = np.zeros(first.size, dtype=np.int64)
        for batch in batches:
            codes, numbers = (batch.column(i).to_numpy() for i in (0, 1))
            at = np.searchsorted(first, codes, side="right") - 1
            inside = (at >= 0) & (codes < past[at])
            np.add.at(totals, at[inside], numbers[inside])
        there = np.flatnonzero(totals)
        yield pa.RecordBatch.from_arrays([pa.array(there), pa.array(totals[there])], names=["node", "number"])

    return count


class _Files:
    """The storage's own files, wherever Hadoop finds them."""

    def __init__(self, session: Any, storage: str) -> None:
        self._java, self._root = session.sparkContext._jvm.org.apache.hadoop.fs, storage
        self._system = self._path("").getFileSystem(session.sparkContext._jsc.hadoopConfiguration())

    def _path(self, name: str) -> Any:
        return self._java.Path(f"{self._root}/{name}" if name else self._root)

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        return bool(self._system.exists(self._path(name)))

    def names(self, folder: str) -> list[str]:
        """Return what is in a folder; nothing if there is none."""
        if not self.exists(folder):
            return []
        return sorted(status.getPath().getName() for status in self._system.listStatus(self._path(folder)))

    def replace(self, name: str, frame: Any, by: str | None = None) -> None:
        """Write a frame's rows as a folder of Parquet files (in folders ``by`` a column), whole, in place of any there.

        They are written aside, under a name that is used once, and renamed. So what a task of a driver that has died
        may still write does not get among them: it lands where nobody looks.
        """
        aside = f"{_ASIDE}/{uuid4().hex}"
        writer = frame.write if by is None else frame.write.partitionBy(by)
        writer.parquet(f"{self._root}/{aside}")
        self.delete(name)
        self._system.mkdirs(self._path(name).getParent())
        if not self._system.rename(self._path(aside), self._path(name)):
            raise StateError(f"{self._root}/{aside} could not be renamed to {name}. Nothing was counted; run again.")

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with all in it."""
        self._system.delete(self._path(name), True)
