"""docs/everywhere.md: its numbers are those of its CSV; trials run, resume, are compared and collected."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.hard_streams import STREAMS, Batch, HardStream, anywhere, few, moving
from benchmarks.hard_trials import QUICK, Effort, Trial, count, measure, moments_of, trial_path, truth_of

from benchmarks import everywhere, everywhere_page, missing
from phdstream.errors import InputError
from phdstream.evaluation import count_points, standard_methods

TINY = Effort("tiny", 0.4, (("small", 30), ("medium", 30), ("large", 30)))
FEW = HardStream("a few", partial(few, a_tick=20, ticks=12), 12)
MOVING = HardStream("moving", partial(moving, life=2, ticks=8), 8, deletes=True, at=(1, 4, 5, 8))


def two_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("everywhere", "hard_trials", "everywhere_page"):
        monkeypatch.setattr(f"benchmarks.{module}.STREAMS", {"few": FEW, "moving": MOVING})


def test_the_page_is_the_template_with_the_numbers() -> None:
    text = everywhere_page.page()
    assert (everywhere_page.DOCS / "everywhere.md").read_text(encoding="utf-8") == text
    assert "{{" not in text


def test_moments_are_spread_evenly_and_differ_by_seed() -> None:
    stream = STREAMS["1,000 points"]
    found = [moments_of(stream, seed) for seed in range(20)]
    assert len(set(found)) == 20
    for ticks in found:
        assert np.searchsorted(np.linspace(0, 100, 13).astype(int), ticks).tolist() == list(range(1, 13))
    assert len(moments_of(stream, 1, 0.5)) == 6
    assert moments_of(MOVING, 1, 0.1) == (1, 4, 5, 8)


def test_the_truth_is_what_came_and_did_not_go() -> None:
    truth = truth_of(MOVING, 1, TINY)
    rectangles = np.concatenate(list(truth.queries.values()))
    batches = list(MOVING.batches(1))
    for tick in (1, 4, 8):
        points = np.concatenate([batch.points for batch in batches if batch.came <= tick < batch.goes])
        number, live, counts = truth.live(tick)
        assert number == len(points) == len(live)
        np.testing.assert_array_equal(counts, count_points(points, rectangles))
        assert [len(events) for events in truth.events(tick)] == [500, 500 if tick > 2 else 0]


def test_many_points_are_counted_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    points, rectangles = np.random.default_rng(1).random((1000, 2)), np.array([[0, 0, 0.5, 0.5], [0.2, 0, 1, 0.1]])
    monkeypatch.setattr("benchmarks.hard_trials._COUNTED_AT_ONCE", 70)
    assert count(points, rectangles).tolist() == count_points(points, rectangles).tolist()
    assert count(points[:0], rectangles).tolist() == [0, 0]


@pytest.mark.parametrize("method", everywhere.METHODS)
@pytest.mark.parametrize("stream", [FEW, MOVING], ids=["few", "moving"])
def test_all_methods_are_measured_at_the_same_moments(stream: HardStream, method: str) -> None:
    spec = standard_methods()[method]
    rows = list(measure(stream, spec, 4.0, 1, TINY))
    assert [row["tick"] for row in rows[::3]] == list(moments_of(stream, 1, TINY.moments))
    assert [row["size"] for row in rows[:3]] == ["small", "medium", "large"]
    assert all(row["total"] == truth_of(stream, 1, TINY).live(row["tick"])[0] for row in rows)
    if method == "nothing":
        assert {(row["weighted_error"], row["distance"], row["synthetic"]) for row in rows} == {(1.0, 1.0, 0)}
    else:
        assert all(0 < row["distance"] < 0.5 and abs(row["synthetic"] / row["total"] - 1) < 1 for row in rows)


def test_a_place_of_a_hierarchy_is_asked_for_alone() -> None:
    """Publishing the truth, by an ε that leaves no noise, has no error on any level."""
    stream = replace(STREAMS["hierarchy"], ticks=3, at=(3,))
    rows = list(measure(stream, standard_methods()["oracle"], 1000.0, 1, TINY))
    assert len(rows) == 3
    assert all(row["error"] < 0.01 and row["distance"] < 0.001 for row in rows)


def test_a_trial_is_known_by_all_that_decides_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    two_streams(monkeypatch)
    trial = Trial("few", "tracking", 1.0, 1)
    other = (
        Trial("moving", "tracking", 1.0, 1),
        Trial("few", "nothing", 1.0, 1),
        Trial("few", "tracking", 2.0, 1),
        Trial("few", "tracking", 1.0, 2),
    )
    paths = {trial_path(tmp_path, each, effort) for effort in (TINY, QUICK) for each in (trial, *other)}
    assert len(paths) == 10
    assert trial.spec is standard_methods()["tracking-insert-only"]
    assert Trial("moving", "tracking", 1.0, 1).spec is standard_methods()["tracking"]


def _other(seed: int) -> Any:
    yield Batch(np.full((seed, 2), 0.5), 1)


def test_another_generator_is_another_trial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from benchmarks import hard_trials

    trial, paths = Trial("few", "nothing", 1.0, 1), set()
    streams = (FEW, replace(FEW, batches=_other), replace(FEW, batches=partial(few, a_tick=21, ticks=12)),
               replace(FEW, what="another sentence"), replace(FEW, queries=anywhere))  # fmt: skip
    for stream in streams:
        hard_trials._code.cache_clear()
        monkeypatch.setattr("benchmarks.hard_trials.STREAMS", {"few": stream})
        paths.add(trial_path(tmp_path, trial, TINY))
    hard_trials._code.cache_clear()
    assert len(paths) == 3


def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes would not know the test's streams."""
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(missing, "ProcessPoolExecutor", lambda workers, _: ThreadPoolExecutor(1))


def test_it_runs_resumes_compares_and_collects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two_streams(monkeypatch)
    in_this_process(monkeypatch)
    monkeypatch.setattr(everywhere, "QUICK", TINY)
    monkeypatch.setattr(everywhere_page, "TABLE", tmp_path / "table.csv")
    monkeypatch.setattr(everywhere, "TABLE", tmp_path / "table.csv")
    asked = ["run", str(tmp_path), "--quick", "--epsilons", "1", "--workers", "1"]
    assert everywhere.main([*asked, "--seeds", "1"]) == 0
    assert everywhere.main(asked) == 0
    assert capsys.readouterr().out.split("\n")[:2] == [
        "10 trials done now, 0 before, 0 failed", "10 trials done now, 10 before, 0 failed",
    ]  # fmt: skip
    saved = tmp_path / "before.json"
    assert everywhere.main(["compare", str(tmp_path), "--save", str(saved), "--against", str(saved)]) == 0
    said = capsys.readouterr().out
    assert "few, ε = 1" in said
    assert "better than the total alone, by the weighted error:" in said
    assert "mean  +0.0% ± 0.0" in said
    assert everywhere.main(["collect", str(tmp_path)]) == 1
    assert "are missing" in capsys.readouterr().err
    monkeypatch.setattr(everywhere, "PUBLISHED", 1)
    monkeypatch.setattr(everywhere, "FULL", TINY)
    narrow = {
        name: replace(stream, seeds=2, epsilons=(1.0,)) for name, stream in {"few": FEW, "moving": MOVING}.items()
    }
    for module in ("everywhere", "everywhere_page"):
        monkeypatch.setattr(f"benchmarks.{module}.STREAMS", narrow)
    everywhere.collect(tmp_path)
    rows = everywhere_page.read()
    assert len(rows) == 2 * 3 * len(everywhere.METHODS)
    assert all(float(row["ratio"]) == 1 for row in rows if row["method"] == "phdstream")
    assert all(float(row["of_nothing"]) == 1 for row in rows if row["method"] == "nothing")
    assert "| few | a few |" in everywhere_page.page()


def test_it_runs_in_processes_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", str(tmp_path), "--quick", "--streams", "hierarchy", "--methods", "nothing", "--seeds", "1"]
    assert everywhere.main([*asked, "--epsilons", "1", "2", "--workers", "1"]) == 0
    assert capsys.readouterr().out == "2 trials done now, 0 before, 0 failed\n"


def test_what_fails_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two_streams(monkeypatch)
    in_this_process(monkeypatch)

    def broken(folder: Path, trial: Trial, effort: Effort) -> None:
        if trial.stream == "few":
            raise InputError("nobody is there.")

    monkeypatch.setattr(everywhere, "run_trial", broken)
    assert everywhere.main(["run", str(tmp_path), "--methods", "nothing", "--seeds", "1", "--epsilons", "1"]) == 1
    said = capsys.readouterr()
    assert "1 trials done now, 0 before, 1 failed" in said.out
    assert "nobody is there." in said.err


def summary(**errors: tuple[float, float]) -> list[dict[str, Any]]:
    """Return rows as of two seeds, with the same error on all sizes, also weighted."""
    return [
        {"stream": "few", "method": method, "epsilon": 1.0, "seed": seed, "size": size, "code": "c",
         "error": error, "weighted_error": error, "distance": error}
        for method, each in errors.items() for seed, error in enumerate(each) for size in everywhere_page.SIZES
    ]  # fmt: skip


def test_ratios_are_geometric_means_over_seeds_with_the_worst() -> None:
    rows = everywhere.ratios(
        summary(tracking=(0.1, 0.2), phdstream=(0.1, 0.8), oracle=(0.05, 0.025), nothing=(1, 1), uniform=(0.1, 0.1))
    )
    (row,) = (row for row in rows if (row["method"], row["size"]) == ("tracking", "small"))
    assert (row["ratio"], row["ratio_worst"]) == ("2.0000", "1.0000")
    assert (row["over_oracle"], row["over_oracle_worst"]) == ("4.0000", "8.0000")
    assert (row["of_nothing"], row["of_nothing_worst"]) == ("7.0711", "5.0000")
    assert (row["of_total"], row["of_total_worst"]) == ("0.7071", "0.5000")
    assert row["distance_ratio"] == "2.0000"
    assert float(row["ratio_spread"]) == pytest.approx(np.log([1, 4]).std(ddof=1), abs=1e-4)
    assert not everywhere.ratios(summary(tracking=(0.1, 0.2)))


def test_the_page_says_what_is_reached_and_what_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    two_streams(monkeypatch)
    made = summary(
        tracking=(0.1, 0.1), phdstream=(0.117, 0.117), oracle=(0.04, 0.04), nothing=(1, 1), uniform=(0.2, 0.2)
    )
    rows: list[Any] = [row for row in everywhere.ratios(made) if row["method"] == "tracking"]
    said = everywhere_page.targets(rows)
    assert "| missed by 10% | 0 of 3 | 0 | 1.17 (few, ε = 1, small) |" in said
    assert "| missed by 20% | 0 of 3 | 0 | 2.50 (few, ε = 1, small) |" in said
    assert said.count("| reached | 3 of 3 | 3 |") == 2
    assert "| few | by 10%: small at 1; medium at 1; large at 1 | by 20%:" in everywhere_page.missed(rows)
    assert "| few | 1 | **1.17** / **1.17** / **1.17** |" in everywhere_page.table(rows)
    assert "1.17*" in everywhere_page.standing(rows)
    assert everywhere_page.missed([]) == "None."


def test_quick_and_published_runs_share_no_seed() -> None:
    quick, full = (everywhere.trials(quick) for quick in (True, False))
    assert {trial.seed for trial in quick} == {1, 2}
    assert {trial.seed for trial in full} == {41, 42, 43, 44, 45}
    assert {trial.stream for trial in full} == set(STREAMS)
    assert {trial.method for trial in quick} == set(everywhere.METHODS)
