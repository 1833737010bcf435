"""One cluster and one Spark session for all tests of a process."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engines.spark.cluster import Cluster, need_spark, properties_of


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """PySpark warns of pandas 3, of which nothing is used here, and leaves sockets to the garbage collector."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need_spark()
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[Any]:
    from phdstream.engines.spark import make_session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = make_session(cluster.url, properties_of(cluster))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
