"""Every check at a small size: nothing is found in what is as it should be, and what is not is seen."""

from __future__ import annotations

import math
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.app.audit.books import BooksCheck
from phdstream.app.audit.command import about, checks_of, run_checks
from phdstream.app.audit.neighbours import KINDS
from phdstream.app.audit.pipeline import _case as pipeline_case
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.audit.canaries import CanaryCheck, lower_bound
from phdstream.audit.cases import configured_case
from phdstream.audit.enumeration import _as_configured, largest_losses
from phdstream.audit.finding import Effort, Finding, Violation
from phdstream.audit.replay import _check as replayed
from phdstream.audit.report import report, schema
from phdstream.audit.sampler import SamplerCheck
from phdstream.audit.taint import Poisoned, TaintCheck, poisoned_buffers
from phdstream.privacy import ExactNoise, noise
from phdstream.privacy.laplace import discrete_laplace
from phdstream.streams.tracking.method import TrackingMethod
from tests.app.commands import phdstream

pytestmark = pytest.mark.slow

SMALL = Effort(0.04)
NO_SEEDS = ("sampler", "enumeration")
"""Production noise has no seed, and of small streams every output is looked at."""


@pytest.mark.parametrize("check", checks_of(), ids=lambda check: check.name)
def test_nothing_is_found(check: Any) -> None:
    (finding,) = run_checks([check], SMALL)
    left_out = check.name == "deliveries" and not find_spec("apsw")
    assert finding.violations == []
    assert finding.status == ("left out" if left_out else "held")
    assert left_out or (finding.trials and finding.samples and finding.ended)
    assert left_out or check.name in NO_SEEDS or finding.seeds is not None


CONFIG = """
[input]
files = "*.csv"
time = "time"
coordinates = ["lon", "lat"]
user = "who"
[ticks]
every = "1d"
start = 2024-03-01
end = 2024-03-03
[domain]
type = "box"
bounds = [[0, 10], [40, 50]]
[privacy]
epsilon = 0.7
unit = { type = "user", inserts = 2, deletes = 0 }
[stream]
window = 2
[output]
releases = "out"
state = "private"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    rows = [f"2024-03-0{1 + i % 2},{i % 10},4{i % 9},u{i % 4}" for i in range(30)]
    (tmp_path / "a.csv").write_text("\n".join(["time,lon,lat,who", *rows]) + "\n")
    (tmp_path / "stream.toml").write_text(CONFIG)
    return tmp_path / "stream.toml"


def test_an_operators_stream_and_folders_are_audited(config: Path) -> None:
    checked = load_config(config)
    run(checked)
    before = {path: path.read_bytes() for path in config.parent.rglob("*") if path.is_file()}
    own = [check for check in checks_of(checked) if check.name in ("replay of your stream", "taint", "ledger")]
    findings = run_checks(own, SMALL)
    assert [finding.violations for finding in findings if finding.violations] == []
    assert len(findings) == 3
    jsonschema.validate(report(findings, SMALL, about(checked)), schema())
    books = next(finding for finding in findings if finding.check == "ledger")
    assert any(note.startswith("yours: 1 of 1 counted files") for note in books.notes)
    assert {path: path.read_bytes() for path in config.parent.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("what", ["manifest", "cells", "state"])
def test_folders_that_do_not_agree_are_told(config: Path, what: str) -> None:
    checked = load_config(config)
    run(checked)
    if what == "manifest":
        path = checked.releases / "manifest.json"
        path.write_text(path.read_text().replace('"last_tick": 2', '"last_tick": 1'))
    elif what == "cells":
        (checked.releases / "cells" / "tick-00001.parquet").unlink()
    else:
        (checked.state / "state.npz").write_bytes(b"no state")
    (finding,) = run_checks([BooksCheck(checked)], SMALL)
    assert finding.status == "violated"
    assert all(line.startswith("your stream: ") for line in finding.violations)


def test_a_stream_that_has_not_begun_has_no_folders_to_look_at(config: Path) -> None:
    (finding,) = run_checks([BooksCheck(load_config(config))], SMALL)
    assert finding.notes == ["your stream has not begun, so its folders were not looked at"]


@pytest.mark.parametrize("method", [phd.PHDStream, phd.TrackingStream])
def test_a_configured_stream_is_enumerated_small(method: Any) -> None:
    stream = method(phd.Cube(12), 0.4, phd.User(2, 1), max_nodes=50, start_after=4)
    instance = _as_configured(stream)
    losses, seen = largest_losses(instance.make, instance.base, instance.ticks, [instance.neighbours[0][0]], 40)
    assert seen
    assert 0 < losses[0] <= instance.neighbours[0][1] + 1e-9 <= 0.4


def test_a_configured_prior_has_one_in_its_place_on_the_small_line() -> None:
    """Its own is of another domain; without any, a start from a prior would not be enumerated as it is configured."""
    places = np.random.default_rng(1).beta(1, 4, (200, 2))
    prior = phd.Prior.from_points(places, about="public")
    stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 0.4, phd.Event(), prior=prior)
    assert _as_configured(stream).make()._method._beginning.splits is not None
    without = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 0.4, phd.Event())
    assert _as_configured(without).make()._method._beginning.splits is None


BOX = phd.Box([(0, 1)], depth=5)
AREA = [[(0, 0), (4, 0), (4, 1), (1, 1), (1, 4), (0, 4)]]
BINS = phd.Bins("age", [0, 18, 65, 99])
DOMAINS: dict[str, Any] = {
    "region": lambda: phd.Region([shapely.Polygon(ring) for ring in AREA], depth=8),
    "globe": lambda: phd.Globe(depth=6),
    "rows": lambda: phd.Product(phd.Box([(0, 1)], depth=4), phd.Category("kind", ["a", "b", "c"]), BINS),
    "rows by name": lambda: phd.Product(phd.Hierarchy({"a": ["a1", "a2"], "b": ["b1"]}), BINS),
}


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("method", [phd.PHDStream, phd.TrackingStream])
def test_nothing_is_found_in_a_stream_on_any_domain(method: Any, name: str) -> None:
    """Cases with a unit more, with an event that is none, with and without a resume."""
    domain, finding = DOMAINS[name](), Finding("replay of your stream", "")
    for seed in range(6):
        unit = phd.User(2, 2) if seed % 3 else phd.Event()
        replayed(configured_case(partial(method, domain, 0.7, unit), seed), seed, finding)
    assert finding.violations == []
    assert finding.samples == 6
    assert finding.largest_loss


@pytest.mark.parametrize("method", [phd.PHDStream, phd.TrackingStream])
def test_a_stream_that_starts_late_is_audited_beyond_its_start(method: Any) -> None:
    """What it holds is counted, and records expire; else nothing would be asked, and nothing found."""
    make, finding = partial(method, BOX, 0.7, phd.Record(), window=20, start_after=60), Finding("replay", "")
    lengths = []
    for seed in (3, 4, 6):  # one of them runs past the window
        case = configured_case(make, seed)
        lengths.append(len(case.ticks))
        replayed(case, seed, finding)
    assert finding.violations == []
    assert finding.largest_loss
    assert min(lengths) > 60
    assert max(lengths) > 60 + 20


def test_every_kind_of_row_meets_every_format_method_unit_and_size() -> None:
    assert math.gcd(len(KINDS), 2 * 3 * 5 * 7) == 1


@pytest.mark.parametrize("seed", [5, 6, 8, 36])
def test_rows_that_are_no_events_leave_no_trace_in_public(seed: int, tmp_path: Path) -> None:
    finding = Finding("pipeline", "")
    pipeline_case(finding, seed, tmp_path)
    assert finding.violations == []
    assert finding.samples == 1


class TestTaint:
    @pytest.mark.parametrize(
        "look",
        [
            lambda counts: counts > 3, lambda counts: bool(counts), lambda counts: counts[0],
            lambda counts: counts.sum(),
            lambda counts: np.sort(counts), lambda counts: np.where(counts, 1, 2), lambda counts: len(counts),
            lambda counts: f"{counts}", lambda counts: counts.size, lambda counts: counts * 2, list, int,
        ],
    )  # fmt: skip
    def test_poisoned_counts_cannot_be_looked_at(self, look: Any) -> None:
        with pytest.raises((Violation, TypeError)):
            look(Poisoned(np.array([1, 2])))

    def test_they_can_be_added_and_raised_to_a_floor(self) -> None:
        counts = np.maximum(np.array([5, 6]) + Poisoned(np.array([1, 2])) - Poisoned(np.array([1, 1])), 6)
        assert object.__getattribute__(counts, "_private").tolist() == [6, 7]

    def test_a_decision_by_a_true_size_is_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        count = TrackingMethod._count_roughly

        def peeking(self: Any, events: Any) -> bool:
            return count(self, events) or self._mechanism._block[0]._waiting > 3

        monkeypatch.setattr(TrackingMethod, "_count_roughly", peeking)
        (finding,) = run_checks([TaintCheck()], Effort(0.2, stop_early=True))
        assert "a private buffer was read by tests.audit.test_checks" in finding.violations[0]

    def test_afterwards_all_is_as_it_was(self) -> None:
        with poisoned_buffers():
            pass
        assert phd.PHDStream(phd.Box([(0, 1)]), 1.0, phd.Event()).update([[0.5]]).tick == 1


def test_noise_of_a_slightly_wrong_scale_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = discrete_laplace
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: exact(scale / 1.04, size))
    (finding,) = run_checks([SamplerCheck()], Effort(0.1))
    assert finding.status == "violated"


def test_too_little_noise_is_seen_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    add = ExactNoise.add
    monkeypatch.setattr(ExactNoise, "add", lambda self, values, scale, at: add(self, values, scale / 6, at))
    (finding,) = run_checks([CanaryCheck()], Effort(0.1))
    assert finding.status == "violated"
    assert finding.lower_bound is not None
    assert finding.lower_bound > 1.0


def test_a_lower_bound_is_below_what_was_guessed_and_grows_with_the_runs() -> None:
    bounds = [lower_bound(round(0.7311 * n), n, 1e-6) for n in (100, 1000, 100_000)]
    assert bounds == sorted(bounds)
    assert 0.9 < bounds[-1] < 1.0
    assert lower_bound(500, 1000, 1e-6) == 0.0


class TestCommand:
    def test_one_check_writes_a_report_and_says_where(self, tmp_path: Path) -> None:
        done = phdstream("audit", "--only", "arithmetic", "--out", str(tmp_path / "a"), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "nothing found  arithmetic:" in done.stdout
        assert (tmp_path / "a.html").exists()
        assert (tmp_path / "a.json").exists()

    def test_an_unknown_check_or_bug_is_named(self, tmp_path: Path) -> None:
        for options, said in ((["--only", "taunt"], "'taint'"), (["--mutate", "--only", "late-row"], "'late-rows'")):
            done = phdstream("audit", *options, cwd=tmp_path)
            assert done.returncode == 1
            assert said in done.stderr
