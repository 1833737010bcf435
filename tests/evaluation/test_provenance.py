"""The digest of the code behind a trial: it follows what makes the numbers, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
import shapely
from benchmarks.reproduction.methods import paper_methods

from phdstream.domains import Box
from phdstream.errors import InputError
from phdstream.evaluation import MethodSpec, Trial, provenance, read_experiment, sources, standard_methods
from phdstream.evaluation.provenance import DIGESTED_AS_DATA, NEVER_RUN, code_digest
from phdstream.evaluation.setting import Setting
from phdstream.evaluation.sources import own_module
from phdstream.evaluation.trials import measure_trial, trial_code, trial_path
from phdstream.evaluation.true_stream import TrueStream
from tests.evaluation.experiments import SMALL, small

PACKAGE = {
    "__init__.py": "from lab.streams import Stream, Other\n",
    "streams.py": (
        '"""About."""\nimport numpy as np\nfrom lab.noise import draw\nSCALE = 2\n"""Of noise."""\n'
        "class Stream:\n    def update(self): return draw(SCALE)\n"
        "class Other:\n    def update(self):\n        from lab.late import late\n        return late()\n"
    ),
    "noise.py": "def draw(scale):\n    # a comment\n    return 3 * scale\ndef unused(): return 1\n",
    "late.py": "def late(): return 5\n",
    "methods.py": (
        "from lab import Other, Stream\n"
        "def with_size(size): return lambda d, e, n: (Stream(), size)\n"
        "ONE, TWO = with_size(1), with_size(2)\n"
        "def other(d, e, n): return Other()\n"
    ),
}

NOT_NUMBERS = {
    "phdstream.evaluation.methods",  # only its functions that a method uses are in the digest
    "phdstream.evaluation.circles",  # read, as data
    "phdstream.domains",  # finds the class of the domain by its name, unless it is at hand: the class is in the digest
    "benchmarks.reproduction.methods",
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of methods that a test can change."""
    (tmp_path / "lab").mkdir()
    for name, text in PACKAGE.items():
        (tmp_path / "lab" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "lab"
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "lab"]:
        del sys.modules[name]
    own_module.cache_clear()
    provenance._read.cache_clear()
    importlib.invalidate_caches()


def digests() -> dict[str, str]:
    forget()
    methods = importlib.import_module("lab.methods")
    return {name: code_digest(getattr(methods, name)) for name in ("ONE", "TWO", "other")}


def changed(folder: Path, file: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return whose digest another text changes."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files change within a second here
    before = digests()
    assert old in PACKAGE[file]
    (folder / file).write_text(PACKAGE[file].replace(old, new))
    return {name for name, digest in digests().items() if digest != before[name]}


@pytest.mark.parametrize(
    ("file", "old", "new", "whose"),
    [
        ("noise.py", "3 * scale", "4 * scale", {"ONE", "TWO"}),
        ("streams.py", "SCALE = 2", "SCALE = 3", {"ONE", "TWO"}),
        ("late.py", "5", "6", {"other"}),
        ("methods.py", "return Other()", "return Other", {"other"}),
        ("methods.py", "with_size(2)", "with_size(7)", {"TWO"}),
        ("noise.py", "# a comment", "# another", set()),
        ("noise.py", "unused(): return 1", "unused(): return 2", set()),
        ("streams.py", "About", "Of streams", set()),
        ("streams.py", "Of noise", "The scale", set()),
        ("noise.py", "3 * scale", "(3 *\n  scale)", set()),
    ],
)
def test_a_change_is_seen_by_those_it_concerns(
    lab: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, whose: set[str]
) -> None:
    assert changed(lab, file, old, new, monkeypatch) == whose


def reached(method: str, kind: type = Box) -> set[str]:
    """Return the modules behind a method's trials."""
    found = provenance._Reached()
    for each in (paper_methods()[method].make, measure_trial, Setting, TrueStream, kind):
        found.follow(each)
    return {text.partition(":")[0] for text in found.texts}


def test_one_method_does_not_depend_on_another() -> None:
    paper, tracking = reached("phdstream"), reached("tracking")
    assert "phdstream.streams.paper.model.selection" in paper - tracking
    assert "phdstream.streams.tracking.model.kalman" in tracking - paper
    assert {"phdstream.privacy.laplace", "phdstream.evaluation.counting", "phdstream.domains.box"} <= paper & tracking
    assert not any(name.startswith("phdstream.streams.tracking") for name in paper)
    assert not any(name.startswith("phdstream.streams.paper") for name in tracking)
    assert "benchmarks.reproduction.random_points" in reached("phdstream-as-in-paper")


def test_a_box_does_not_depend_on_regions() -> None:
    assert not any("region" in name or "network" in name for name in reached("phdstream"))
    region = own_module("phdstream.domains.region.region")
    assert region is not None
    kind = importlib.import_module("phdstream.domains.region").Region
    assert "phdstream.domains.region.clipping" in reached("phdstream", kind)


def test_every_method_has_its_own_code() -> None:
    table = paper_methods()
    codes = {trial_code(read_experiment(SMALL | {"methods": [name]}, methods=paper_methods), name) for name in table}
    assert len(codes) == len(table)
    assert all(code.startswith("box:") for code in codes)


def test_other_code_makes_other_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial("phdstream", 1.0, 0.2, 1)
    before = trial_path(tmp_path, small(), trial)
    assert trial_path(tmp_path, small(), trial) == before
    monkeypatch.setattr("phdstream.evaluation.trials.method_code", lambda *_: "other")
    assert trial_path(tmp_path, small(), trial) != before


def test_a_function_without_source_is_refused() -> None:
    made: dict[str, Any] = {"__name__": "nowhere"}
    exec("def make(domain, epsilon, noise): return None", made)
    with pytest.raises(InputError, match="put it into a module"):
        code_digest(made["make"])


def test_partials_and_classes_are_followed() -> None:
    first, second = (code_digest(partial(_take, size)) for size in (1, 2))
    assert first != second
    assert code_digest(Box) != code_digest(MethodSpec)


def _take(size: int) -> int:
    return size


def functions(name: str) -> Iterator[FunctionType]:
    """Yield all functions and methods that a module, or the modules of a package, define."""
    module = importlib.import_module(name)
    for inner in pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}."):
        yield from functions(inner.name)
    for value in vars(module).values():
        each = vars(value).values() if inspect.isclass(value) else [value]
        for found in each:
            found = getattr(found, "__func__", found)
            found = getattr(found, "fget", None) or found
            if isinstance(found, FunctionType) and found.__module__ == name and not found.__closure__:
                yield found


@pytest.fixture
def poisoned() -> Iterator[None]:
    """Every function of the modules that are left out fails when it is called."""

    def poison(*_: Any, **__: Any) -> None:
        raise AssertionError("a trial executed code that its digest leaves out")

    before: dict[FunctionType, CodeType] = {}
    for name in NEVER_RUN:
        if sources._source_file(name):
            before |= {each: each.__code__ for each in functions(name)}
    assert len(before) > 100
    for each in before:
        each.__code__ = poison.__code__
    yield
    for each, code in before.items():
        each.__code__ = code


def run_small(method: str) -> list[dict[str, Any]]:
    data = {"circles": "growing" if "insert-only" in method else "moving", "points": 300, "batch": 150}
    experiment = read_experiment(SMALL | {"methods": [method], "data": data}, methods=paper_methods)
    return measure_trial(experiment, Trial(method, 1.0, 0.2, 1))


@pytest.mark.parametrize("method", [*paper_methods()])
@pytest.mark.usefixtures("poisoned")
def test_a_trial_does_not_execute_what_is_left_out(method: str) -> None:
    assert run_small(method)


@pytest.mark.parametrize("method", [*paper_methods()])
def test_all_that_a_trial_executes_is_in_its_digest(method: str) -> None:
    called: set[str] = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_globals.get("__name__", "")) if event == "call" else None)
    try:
        run_small(method)
    finally:
        sys.setprofile(None)
    ours = {name for name in called if name.partition(".")[0] in ("phdstream", "benchmarks")}
    as_data = {name for name in ours if name.startswith(DIGESTED_AS_DATA)}
    assert "phdstream.evaluation.trials" in ours
    assert ours - as_data - NOT_NUMBERS <= reached(method)


@pytest.mark.parametrize("method", ["phdstream", "tracking", "baseline-3"])
@pytest.mark.usefixtures("poisoned")
def test_nor_does_one_on_a_region(tmp_path: Path, method: str) -> None:
    (tmp_path / "disc.geojson").write_text(shapely.to_geojson(shapely.Point(0.5, 0.5).buffer(0.5)))
    domain = {"type": "region", "polygons": "disc.geojson"}
    experiment = read_experiment(SMALL | {"methods": [method], "domain": domain}, tmp_path, standard_methods)
    assert measure_trial(experiment, Trial(method, 1.0, 0.2, 1))
