from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.api.serving import Make, Served, crowd


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Make streams that are served until the test ends."""
    made: list[Served] = []

    def one(name: str = "one", **more: Any) -> Served:
        made.append(Served(tmp_path / name, **more))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A stream with three released ticks, to be read only."""
    served = Served(tmp_path_factory.mktemp("released"), service="public = true\nrate = 1000000")
    for tick in (1, 2, 3):
        served.seconds = 10 * tick - 5.0
        assert served.post(crowd(served.seconds, seed=tick)).json()["accepted"] == 400
        served.go_to(10.0 * tick)
    served.seconds = 33.0
    yield served
    served.close()
