"""One cluster and one Spark session for all tests of a test run: all tests that need them run in one process."""

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process run all tests that need the session: one session a test run, however many processes there are."""
    for item in items:
        if {"spark", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("spark"))
