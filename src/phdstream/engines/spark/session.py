"""A Spark session with the settings that exact answers need."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from phdstream.errors import InputError

__all__ = ["check_session", "make_session"]

_NEEDED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""Times without a zone are numbers of microseconds, whatever the zone of the machine; a file that is damaged or gone
is an error, and no smaller count."""
_WANTED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",  # many small ticks: few partitions
    "spark.sql.shuffle.partitions": "32",
}


def make_session(master: str | None = None, properties: Mapping[str, str] | None = None) -> Any:
    """Return a Spark session; ``properties`` are Spark's own and go before ours.

    Without ``master`` it is what `spark-submit` says, or else this machine alone. Workers use this Python, unless
    ``PYSPARK_PYTHON`` names another.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("the engine Spark needs pyspark: install it with  pip install 'phdstream[spark]'.") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("phdstream")
    if master is not None:
        builder = builder.master(master)
    for key, value in (_WANTED | dict(properties or {}) | _NEEDED).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def check_session(session: Any) -> None:
    """Refuse a session whose settings would make another stream."""
    for key, value in _NEEDED.items():
        if session.conf.get(key) != value:
            raise InputError(f"the Spark session has {key} = {session.conf.get(key)}, but {value} is needed.")
