"""Spark as the engine: events are placed, bounded and counted on a cluster; the mechanism stays with the driver.

- `encoding`: rows to ticks and codes, by SQL or by Arrow batches;
- `counting`: `SparkEngine`, which holds events as Parquet files of codes and numbers and counts disjoint nodes;
- `ticks`: from rows to the held events of one tick, users bounded exactly as `phdstream.privacy.bounding` does it;
- `batch`: all ticks of a table of rows;
- `arrivals`: which tick takes a row that arrived when it did;
- `streaming`: Structured Streaming, with ticks closed by the public schedule.

Everything here is private. Needs the extra ``spark``.
"""

from phdstream.engines.spark.batch import run_batch
from phdstream.engines.spark.counting import SparkEngine
from phdstream.engines.spark.session import make_session

__all__ = ["SparkEngine", "make_session", "run_batch"]
