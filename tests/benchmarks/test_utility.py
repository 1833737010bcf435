"""docs/utility.md: its numbers are those of docs/results/utility.csv; the benchmark runs, at a small size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
    assert "seed 12, circles moving: 8 trials" in said
    assert "seed 12, circles moving: 0 trials" in said
    rows = utility.ratios(tmp_path)
    assert {row["method"] for row in rows} == {"tracking", *(utility.LABELS.get(name, name) for name in utility.PEERS)}
    assert all(float(row["ratio"]) == 1 for row in rows if row["method"] == "phdstream")
    assert all(float(row["paper_ratio"]) == 1 for row in rows if row["method"] == utility.LABELS[utility.PAPER])
