"""What a service's logs, its table of ticks and the names of its files could tell beside the released numbers.

Its times (when a file appears, how long a request takes) can tell more, and are not promised:
docs/privacy/known-limits.md.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.streams import HandClock, deliver, row, service_at, write_config

_FORM = {*vars(logging.makeLogRecord({})), "message", "asctime"}


def played(folder: Path, caplog: pytest.LogCaptureFixture, number: int) -> tuple[list[Any], list[Any], Any]:
    """Serve four ticks of so many events each; return what was logged, the table of ticks, and the files."""
    folder.mkdir()
    caplog.clear()
    hand, rng = HandClock(), np.random.default_rng(number)
    with caplog.at_level(logging.DEBUG):
        service = service_at(write_config(folder), hand)
        for tick in range(1, 5):
            hand.go_to(10 * tick - 2)
            bad = [row(10 * tick - 5, x=7.0), {"time": "yesterday", "x": 0.5, "y": 0.5}] * (number // 3)
            deliver(service, f"tick {tick}", [row(10 * tick - 5, *rng.random(2).tolist()) for _ in range(number)] + bad)
            hand.go_to(10 * tick)
            service.publisher.release_due()
        ticks = list(service.board.rows(1, 9))
        service.stop()
    logged = [
        (each.name, each.levelname, each.getMessage(), {k: v for k, v in vars(each).items() if k not in _FORM})
        for each in caplog.records
        if each.name.startswith("phdstream")
    ]
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "private" not in path.parts)
    return logged, ticks, files


def test_logs_ticks_and_files_are_the_same_whatever_came(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    few, many = (played(tmp_path / str(number), caplog, number) for number in (3, 200))
    assert few == many
    assert len(few[0]) >= 4  # ticks are logged, by their number
    assert [one["status"] for one in few[1]] == ["released"] * 4 + ["open"]
