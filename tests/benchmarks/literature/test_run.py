"""The literature benchmark: trials run, resume and are collected; the page is made from the CSV alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.literature.methods import METHODS, NONNEGATIVE, PLAIN, POINTS
from benchmarks.literature.sets import SETS, PointSet, city, recorded, uniform
from benchmarks.literature.trials import FULL, QUICK, Effort, Trial, trial_path, truth_of

from benchmarks import missing
from benchmarks.literature import __main__ as literature
from benchmarks.literature import page as pages
from benchmarks.literature import trials as trial_files
from phdstream.errors import InputError

TINY = Effort("tiny", (("small", 30), ("medium", 30), ("large", 30)))
FEW = {
    "uniform few": PointSet("uniform", "anywhere", partial(uniform, 300), depth=10, seeds=2),
    "city few": PointSet("city", "forty places", partial(city, 400), depth=12, seeds=2),
}


def few_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    for module in (literature, pages, trial_files):
        monkeypatch.setattr(module, "SETS", FEW)
    for module in (literature, pages):
        monkeypatch.setattr(module, "TABLE", tmp_path / "table.csv")
    monkeypatch.setattr(literature, "EPSILONS", (1.0,))
    monkeypatch.setattr(literature, "FULL", TINY)
    monkeypatch.setattr(literature, "QUICK", TINY)
    monkeypatch.setattr(missing, "ProcessPoolExecutor", lambda workers, _: ThreadPoolExecutor(1))
    trial_files._code.cache_clear()


def test_the_page_is_the_template_with_the_numbers() -> None:
    text = pages.page()
    assert (pages.DOCS / "literature.md").read_text(encoding="utf-8") == text
    assert "{{" not in text


def test_it_runs_resumes_and_collects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few_sets(monkeypatch, tmp_path)
    asked = ["run", str(tmp_path), "--workers", "1"]
    assert literature.main([*asked, "--seeds", "41", "--methods", "tracking"]) == 0
    assert literature.main(["collect", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.out == "2 trials done now, 0 before, 0 failed\n"
    assert "34 trials of the code that is here are missing" in said.err
    assert literature.main(asked) == 0
    assert literature.main(asked) == 0
    assert capsys.readouterr().out.split("\n")[:2] == [
        "34 trials done now, 2 before, 0 failed", "0 trials done now, 36 before, 0 failed",
    ]  # fmt: skip
    assert literature.main(["collect", str(tmp_path)]) == 0
    rows = pages.read()
    variants = 2 * 7 + 2
    assert len(rows) == 2 * 3 * variants
    ours = [row for row in rows if (row["method"], row["variant"]) == ("tracking", PLAIN)]
    assert {row["ratio"] for row in ours} == {1.0}
    assert {row["points"] for row in rows} == {300.0, 400.0}
    assert {row["seeds"] for row in rows} == {"2"}
    text = pages.page()
    assert "{{" not in text
    assert "| uniform few | 1 |" in text
    monkeypatch.setattr(literature, "DOCS", tmp_path)
    monkeypatch.setattr(literature, "FIGURE", tmp_path / "figure.png")
    assert literature.main(["write"]) == 0
    assert (tmp_path / "literature.md").read_text(encoding="utf-8") == text
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_quick_runs_print_where_we_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few_sets(monkeypatch, tmp_path)
    fast = ["--quick", "--epsilons", "1", "--workers", "1", "--methods", "tracking", "uniform-grid", "nothing"]
    assert literature.main(["run", str(tmp_path), *fast]) == 0
    said = capsys.readouterr().out
    assert said.startswith("12 trials done now, 0 before, 0 failed\n")
    assert "| uniform grid |" in said
    assert "| city few | 1 |" in said


def test_what_fails_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few_sets(monkeypatch, tmp_path)

    def broken(folder: Path, trial: Trial, effort: Effort, data: Path | None) -> None:
        if trial.set == "city few":
            raise InputError("nobody is there.")

    monkeypatch.setattr(literature, "run_trial", broken)
    assert literature.main(["run", str(tmp_path), "--methods", "nothing", "--seeds", "1", "--epsilons", "1"]) == 1
    said = capsys.readouterr()
    assert "1 trials done now, 0 before, 1 failed" in said.out
    assert "nobody is there." in said.err


def test_it_runs_in_processes_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", str(tmp_path), "--sets", "uniform 1,000", "--methods", "nothing", "--seeds", "1"]
    assert literature.main([*asked, "--epsilons", "1", "2", "--workers", "1"]) == 0
    assert capsys.readouterr().out == "2 trials done now, 0 before, 0 failed\n"


def test_a_trial_is_known_by_all_that_decides_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trial = Trial("uniform 1,000", "tracking", 1.0, 1)
    others = (replace(trial, set="city 1,000"), replace(trial, method="privtree"), replace(trial, epsilon=2.0))
    paths = {trial_path(tmp_path, each, effort) for effort in (FULL, QUICK) for each in (trial, *others)}
    for changed in (
        replace(SETS["uniform 1,000"], depth=22),
        replace(SETS["uniform 1,000"], points=partial(uniform, 9)),
    ):
        trial_files._code.cache_clear()
        monkeypatch.setattr(trial_files, "SETS", {"uniform 1,000": changed})
        paths |= {trial_path(tmp_path, each, FULL) for each in (trial, replace(trial, method="privtree"))}
    trial_files._code.cache_clear()
    assert len(paths) == 11, "a published method does not know how often the square may be halved"


def test_tuning_and_published_seeds_are_apart() -> None:
    quick, full = (literature.trials(quick) for quick in (True, False))
    assert {trial.seed for trial in quick} == {1, 2}
    assert {trial.seed for trial in full} == {41, 42, 43, 44, 45}
    assert {trial.set for trial in full} == set(SETS)
    assert {trial.method for trial in quick} == set(METHODS)
    assert not any(SETS[trial.set].real for trial in literature.trials(real=False))
    assert [trial.seed for trial in full] == sorted(trial.seed for trial in full)


def test_invented_points_are_in_the_square_and_differ_by_seed() -> None:
    for name, each in SETS.items():
        if not each.real and each.quick:
            one, other = each.points(1, None), each.points(2, None)
            assert f"{len(one):,}" == name.split()[-1]
            assert ((one >= 0) & (one <= 1)).all()
            assert (one == each.points(1, None)).all()
            assert not (one == other).all()


def test_recorded_points_are_scaled_and_those_outside_left_out(tmp_path: Path) -> None:
    table = pa.table({"lon": [-74.3, -73.65, -73.975, 0.0], "lat": [40.5, 41.0, 40.75, 51.0]})
    pq.write_table(table, tmp_path / "some.parquet")
    points = recorded("some.parquet", 4, 24, None, 1, tmp_path)
    np.testing.assert_allclose(points, np.array([[0, 0], [1, 1], [0.5, 0.5]]), atol=1e-9)
    assert len(recorded("some.parquet", 4, 24, 2, 1, tmp_path)) == 2
    with pytest.raises(InputError, match="has 4 rows"):
        recorded("some.parquet", 5, 24, None, 1, tmp_path)
    for folder in (None, tmp_path / "elsewhere"):
        with pytest.raises(InputError, match="--data"):
            recorded("some.parquet", 4, 24, None, 1, folder)


def test_counts_are_those_of_the_points() -> None:
    truth = truth_of(FEW["city few"], 3, TINY, None)
    asked = truth.queries["large"]
    inside = [
        ((truth.points >= low) & (truth.points <= high)).all(axis=1).sum() for low, high in asked.reshape(-1, 2, 2)
    ]
    assert truth.counts[-30:].tolist() == inside


def row(method: str, variant: str, ratio: float, size: str = "small", **other: Any) -> dict[str, Any]:
    shared = {
        "set": "city few",
        "points": 400,
        "epsilon": 1.0,
        "seeds": 2,
        "ratio_best": 1.1 * ratio,
        "code": "c",
        "weighted_ratio": 2 * ratio,
    }
    return shared | {"method": method, "variant": variant, "ratio": ratio, "size": size} | other


def test_a_published_method_is_judged_by_its_better_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "SETS", FEW)
    rows = pages.prepared(
        row(method, variant, ratio, size)
        for size, grid in (("small", 0.9), ("medium", 0.98), ("large", 1.5))
        for method, variant, ratio in (
            ("tracking", PLAIN, 1.0), ("tracking", POINTS, 0.5), ("uniform-grid", PLAIN, 2.0),
            ("uniform-grid", NONNEGATIVE, grid), ("dawa", PLAIN, 1.2), ("nothing", PLAIN, 0.1),
        )
    )  # fmt: skip
    said = pages.summary(rows)
    assert "**The target is missed: in 1 of 3 cells a published method wins by more than 3%** (1 of these in" in said
    assert "every seed), in 1 by less." in said
    assert "0.90 of ours: uniform grid, city few, ε = 1, small" in said
    assert (
        "| uniform grid | 0.90 / 0.98 / 1.50 | 1 of 3 | 0.90 (city few, ε = 1, small) | 1.80 / 1.96 / 3.00 | 0 of 3 |"
        in pages.methods(rows)
    )
    assert "| city few | uniform grid | small 0.90 at 1 |" in pages.lost(rows)
    assert "| city | 1 of 3 | 0.90 / 0.98 / 1.20 |" in pages.kinds(rows)
    assert "points × ε 0 to 1,000 | 1 of 3 |" in pages.kinds(rows)
    assert "**0.90** / 0.98 / 1.50" in pages.table(rows)
    assert "**0.10**" not in pages.table(rows), "a floor is no published method"
    assert "| ours, whole points | 0.50 / 0.50 / 0.50 |" in pages.variants(rows)
    assert pages.summary(rows[:1] + [each for each in rows if each["method"] == "dawa"]).startswith("In none of 3")
    assert pages.lost([each for each in rows if each["method"] == "dawa"]) == "None."


def test_results_of_two_versions_are_refused() -> None:
    rows = [row("dawa", PLAIN, 1.0), row("dawa", PLAIN, 1.0, "large", code="d")]
    with pytest.raises(InputError, match="results of dawa were made by 2 versions"):
        pages.prepared(rows)


def test_ratios_are_geometric_means_over_seeds_with_the_worst() -> None:
    found = {
        Trial("city few", method, 1.0, seed): [
            {"set": "city few", "method": method, "epsilon": 1.0, "seed": seed, "code": "c", "variant": PLAIN,
             "size": "small", "error": error, "weighted_error": 2 * error, "points": 400, "seconds": 1.0}
        ]
        for method, errors in (("tracking", (0.1, 0.2)), ("dawa", (0.1, 0.8)))
        for seed, error in enumerate(errors)
    }  # fmt: skip
    ours, theirs = literature.ratios(found)
    assert (ours["ratio"], ours["ratio_worst"]) == ("1", "1")
    assert (theirs["ratio"], theirs["ratio_worst"], theirs["ratio_best"]) == ("2", "1", "4")
    assert theirs["weighted_ratio"] == "2"
    assert float(theirs["ratio_spread"]) == pytest.approx(np.log([1, 4]).std(ddof=1), abs=1e-4)
    assert literature.ratios({trial: rows for trial, rows in found.items() if trial.method == "dawa"}) == []
