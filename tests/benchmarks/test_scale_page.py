"""docs/scale.md: its numbers are those of docs/results/scale-*.csv; sums are fitted as they say; meters meter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.spark import driver
from benchmarks.spark.meters import _TICK, METRICS, Meter, Tree, _Process
from benchmarks.spark.model import PARTS, Row, _fit, fitted, rows_of, unseen
from benchmarks.spark.page import PAGE, page


def test_the_page_is_the_template_with_the_numbers() -> None:
    text = page()
    assert PAGE.read_text(encoding="utf-8") == text
    assert "{{" not in text


def test_what_is_predicted_took_no_part_in_the_fit() -> None:
    known = {row.setting["rows"] for row in rows_of() if row.experiment != "unseen"}
    (rows,) = {row.setting["rows"] for row in rows_of() if row.experiment == "unseen"}
    assert rows >= 2 * max(known)
    assert [each[:2] for each in unseen()][: len(PARTS)] == list(PARTS)
    assert all(each >= 0 for found in fitted().values() for each in found.of.values())


def row(rows: float, partitions: float, took: float) -> Row:
    setting = {"rows": rows, "partitions": partitions, "fixed": 1.0}
    return Row("size", "spark", False, "hold", setting, {"cpu_s": took})


def test_sums_are_found_and_none_is_negative() -> None:
    settings = [(1e6, 8.0), (4e6, 8.0), (8e6, 8.0), (4e6, 32.0), (4e6, 128.0)]
    exact = [row(rows, parts, 2 + 3e-6 * rows + 0.05 * parts) for rows, parts in settings]
    found = _fit(exact, "cpu_s", ("fixed", "rows", "partitions"))
    np.testing.assert_allclose([found.of[part] for part in ("fixed", "rows", "partitions")], [2, 3e-6, 0.05])
    assert found.at({"rows": 16e6, "partitions": 16.0, "fixed": 1.0}) == pytest.approx(50.8)
    less = [row(rows, parts, 3e-6 * rows - 0.01 * parts) for rows, parts in settings]
    assert set(_fit(less, "cpu_s", ("rows", "partitions")).of) == {"rows"}


def test_time_of_processes_that_came_of_this_one_counts() -> None:
    tree = Tree()
    before = tree.cpu()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    assert tree.cpu() - before >= 0.4


def test_time_of_processes_that_nobody_waited_for_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [
        {1: _Process(0, 10, 0), 2: _Process(1, 100, 0), 3: _Process(2, 50, 0)},
        {1: _Process(0, 10, 0), 2: _Process(1, 100, 0)},  # 3 has ended, and 2 does not know
        {1: _Process(0, 10, 100)},  # 2 has ended, and 1 has waited for it
        {1: _Process(0, 30, 100)},
    ]
    tree = Tree(1)
    monkeypatch.setattr(tree, "_now", iter(looks).__next__)
    assert [round(tree.cpu() * _TICK) for _ in looks] == [160, 160, 160, 180]


def test_bytes_go_to_the_step_in_whose_stage_they_came(tmp_path: Path) -> None:
    def stage(number: int, step: str) -> dict[str, object]:
        return {"Event": "SparkListenerStageSubmitted", "Stage Info": {"Stage ID": number},
                "Properties": {"spark.job.description": step}}  # fmt: skip

    def task(number: int, size: int) -> dict[str, object]:
        metrics = {"Shuffle Write Metrics": {"Shuffle Bytes Written": size, "Shuffle Records Written": 1},
                   "Shuffle Read Metrics": {"Remote Bytes Read": 2}, "Result Size": 3,
                   "Input Metrics": {"Bytes Read": 4}, "Output Metrics": {"Bytes Written": 5}}  # fmt: skip
        return {"Event": "SparkListenerTaskEnd", "Stage ID": number, "Task Metrics": metrics}

    events = [stage(0, "step 0"), stage(1, "step 1"), stage(2, "another's"), task(0, 10), task(1, 20), task(1, 30),
              task(2, 99), {"Event": "SparkListenerTaskEnd", "Stage ID": 1}]  # fmt: skip
    (tmp_path / "log").write_text("\n".join(map(json.dumps, events)))
    meter = Meter()
    for step in ("a", "b"):
        with meter.step(step=step):
            pass
    meter.add_metrics(tmp_path)
    found = [[each[name] for name in METRICS] for each in meter.rows]
    assert found == [[1, 10, 1, 2, 3, 4, 5], [2, 50, 2, 4, 6, 8, 10]]


def test_the_drivers_part_at_a_small_size() -> None:
    (found,) = driver.driver_rows([2000])
    assert found["asked"] >= found["questions"] > 0
    assert found["points"] > 1000
    assert found["peak_bytes"] > 0
