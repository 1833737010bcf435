"""Whole experiments: resumed, repeated, interrupted, failing; the numbers against a hand computation; the report."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import phdstream as phd
from phdstream.errors import InputError
from phdstream.evaluation import DO_NOT_PUBLISH, Trial, read_experiment, run_experiment
from phdstream.evaluation.running import Work
from phdstream.evaluation.setting import load_setting
from phdstream.evaluation.summary import curves, means, recommend
from phdstream.evaluation.trials import is_finished, measure_trial, trial_path
from tests.evaluation.experiments import OWN, dies_once, fails_once, small, write_events


def numbers(out: Path) -> pa.Table:
    return pyarrow.parquet.read_table(out / "results.parquet").drop_columns(["seconds"])


def times(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (out / "trials").iterdir()}


@pytest.mark.slow
def test_resume_computes_only_what_is_missing_and_workers_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phdstream.evaluation.running.write_report", lambda path, *_: path)  # other tests look at it
    seen: list[tuple[int, int | None]] = []
    first = run_experiment(small(), tmp_path / "one", 1, lambda done, total: seen.append((done, total)))
    assert (first.done, first.kept, first.failed) == (4, 0, {})
    assert seen == [(i, 4) for i in range(5)]
    before, whole = times(tmp_path / "one"), numbers(tmp_path / "one")
    lost = trial_path(tmp_path / "one" / "trials", small(), Trial("phdstream", 1.0, 0.2, 2))
    lost.write_bytes(lost.read_bytes()[:100])  # not a whole file: as good as none
    again = run_experiment(small(), tmp_path / "one", 1)
    assert (again.done, again.kept) == (1, 3)
    after = times(tmp_path / "one")
    assert [name for name in before if after[name] != before[name]] == [lost.name]
    assert numbers(tmp_path / "one").equals(whole)
    run_experiment(small(), tmp_path / "two", 2)
    assert numbers(tmp_path / "two").equals(whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "trial", "reason"),
    [
        (dies_once, Trial("baseline-3", 1.0, 0.2, 1), "its process died"),
        (fails_once, Trial("phdstream", 1.0, 0.2, 2), "InputError: a bad day"),
    ],
)
def test_a_failing_run_is_reported_and_the_others_finish(tmp_path: Path, work: Work, trial: Trial, reason: str) -> None:
    outcome = run_experiment(small(), tmp_path, 1, work=work)
    assert list(outcome.failed) == [trial]
    assert reason in outcome.failed[trial]
    assert outcome.done == 3
    assert outcome.report is not None
    assert "3 of 4 trials finished" in outcome.report.read_text()
    assert sum(is_finished(tmp_path / "trials", small(), other) for other in small().trials()) == 3


def test_other_settings_are_other_trials(tmp_path: Path) -> None:
    trial = Trial("phdstream", 1.0, 0.2, 1)
    paths = {trial_path(tmp_path, small(**change), trial) for change in ({}, {"measure_every": 6}, {"name": "b"})}
    assert len(paths) == 3


def test_errors_by_hand() -> None:
    """Straight from the definition: the stream run here, the points counted here, one by one."""
    experiment = small()
    setting = load_setting(experiment)
    stream = phd.PHDStream(setting.domain, 1.0, phd.Event(), noise=phd.Simulation(7))
    by_hand = []
    for moment in setting.truth.moments(setting.start_tick(0.2), experiment.measure_every):
        release = stream.update(moment.inserts, moment.deletes)
        if moment.live is not None:
            each = []
            for west, south, east, north in setting.queries["small"]:
                box = phd.Box([(west, east), (south, north)])
                true, made = (int(box.encode(p)[1].sum()) for p in (moment.live, release.sample()))
                each.append(abs(made - true) / max(true, 0.001 * len(moment.live)))
            by_hand.append(np.mean(each))
    rows = measure_trial(experiment, Trial("phdstream", 1.0, 0.2, 7))
    np.testing.assert_allclose([row["error"] for row in rows if row["size"] == "small"], by_hand)


def test_fanout_4_has_the_same_finest_cells() -> None:
    two, four = load_setting(small()).domain, load_setting(small(), fanout=4).domain
    assert (two.fanout, four.fanout, two.total_bits, four.total_bits) == (2, 4, 20, 20)


def test_the_summary() -> None:
    errors = {("a", 1): (1.0, 3.0), ("a", 2): (3.0, 5.0), ("b", 1): (1.0, 1.0), ("b", 2): (1.0, 1.0)}
    table = pa.Table.from_pylist(
        [
            {"size": "small", "epsilon": 1.0, "t0": 1.0, "method": method, "seed": seed, "tick": tick}
            | {"weighted_error": error}
            for (method, seed), both in errors.items()
            for tick, error in enumerate(both, start=1)
        ]
    )
    mean = means(table)["small", 1.0, 1.0, "a"]
    assert (mean.mean, mean.seeds) == (3.0, 2)
    assert mean.spread == pytest.approx(np.std([2, 4], ddof=1))
    curve = curves(table)["small", 1.0, 1.0, "a"]
    assert (curve.mean.tolist(), curve.low.tolist(), curve.high.tolist()) == ([2, 4], [1, 3], [3, 5])
    assert recommend(table, {"a"})[1.0][0] == "a"
    assert recommend(table, {"a", "b"})[1.0][0] == "b"


@pytest.mark.slow
def test_real_files_are_labelled_private(tmp_path: Path) -> None:
    write_events(tmp_path / "events.parquet")
    outcome = run_experiment(read_experiment(OWN, tmp_path), tmp_path / "out", 1)
    assert outcome.label == DO_NOT_PUBLISH
    assert outcome.report is not None
    assert DO_NOT_PUBLISH in outcome.report.read_text()
    assert outcome.report.stat().st_mode & 0o077 == 0
    for path in [tmp_path / "out" / "results.parquet", *(tmp_path / "out" / "trials").iterdir()]:
        assert pyarrow.parquet.read_schema(path).metadata[b"label"] == DO_NOT_PUBLISH.encode()
        assert path.stat().st_mode & 0o077 == 0
    write_events(tmp_path / "events.parquet", per_day=31)  # other data, same name: other runs
    other = read_experiment(OWN, tmp_path)
    assert not any(is_finished(tmp_path / "out" / "trials", other, trial) for trial in other.trials())


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"phdstream\[plot\]"):
        run_experiment(small(), tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        run_experiment(small(), tmp_path / "file")


def test_trials_are_ordered_seed_by_seed() -> None:
    trials = list(small().trials())
    assert [trial.seed for trial in trials] == [1, 1, 2, 2]
    assert dataclasses.astuple(trials[0]) == ("phdstream", 1.0, 0.2, 1)
    assert str(trials[0]) == "phdstream, ε = 1, t0 = 0.2, seed 1"
