"""docs/utility.md: its numbers are those of docs/results/utility.csv; the benchmark runs, at a small size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.weighted_table import weighted_table

from benchmarks import utility

ROOT = Path(__file__).parents[2]


def test_the_page_is_the_template_with_the_numbers() -> None:
    assert (ROOT / "docs" / "utility.md").read_text(encoding="utf-8") == utility.page()


@pytest.mark.slow
def test_it_runs_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small: dict[str, Any] = {"data": {"circles": "moving", "points": 600, "batch": 100}, "start_after": [0.3]}
    monkeypatch.setattr(utility, "STREAMS", {"circles moving": small | {"measure_every": 9}})
    monkeypatch.setattr(utility, "EPSILONS", [1.0])
    monkeypatch.setattr("phdstream.evaluation.running.write_report", lambda path, *_: path)  # nobody looks at it here
    utility.run(tmp_path, tmp_path, seeds=2, workers=1)
    utility.run(tmp_path, tmp_path, seeds=2, workers=1)
    said = capsys.readouterr().out
    assert "seed 12, circles moving: 10 trials" in said
    assert "seed 12, circles moving: 0 trials" in said
    utility.check_versions(tmp_path)
    rows = utility.ratios(tmp_path)
    assert all(row["weighted_error"] == "1.0000" for row in rows if row["method"] == "publishing nothing")
    assert all(str(row["code"]).startswith("box:") for row in rows)
    assert {row["method"] for row in rows} == {"tracking", *(utility.LABELS.get(name, name) for name in utility.PEERS)}
    assert all(float(row["ratio"]) == 1 for row in rows if row["method"] == "phdstream")
    assert all(float(row["paper_ratio"]) == 1 for row in rows if row["method"] == utility.LABELS[utility.PAPER])


def test_the_table_of_weighted_errors_marks_what_is_better_than_nothing() -> None:
    rows: list[dict[str, Any]] = [
        {"stream": "s", "epsilon": 1.0, "size": size, "method": method, "weighted_error": error}
        for size in ("small", "medium", "large")
        for method, error in (("tracking", "0.5"), ("phdstream", "1.25"), ("the total alone", "1.5"))
    ]
    text = weighted_table(rows, ["s", "other"], [1.0])
    assert "| s | 1 | **0.50** / **0.50** / **0.50** | 1.25 / 1.25 / 1.25 | 1.50 / 1.50 / 1.50 |" in text
    assert "other" not in text
    for row in rows:
        del row["weighted_error"]
    assert weighted_table(rows, ["s"], [1.0]) == "Not run yet."
