"""An experiment: a small TOML file that says which data, which methods, which ε, when to start, which seeds."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phdstream.errors import ConfigError, did_you_mean
from phdstream.evaluation.methods import contender
from phdstream.evaluation.presets import DATA
from phdstream.evaluation.queries import QUERY_NUMBERS
from phdstream.io.domain_table import DOMAIN_FILES

__all__ = ["Cell", "Experiment", "load_experiment", "read_experiment"]

_TOP = {"name", "data", "domain", "methods", "epsilons", "start_after", "seeds", "measure_every", "queries"}
_DATA = {"preset", "file", "time", "coordinates", "sign", "every", "start", "end", "lifetime", "points", "batch"}
_DOMAIN = {"type", "bounds", "fanout", "depth", "crs", "tree_crs", "snap", *DOMAIN_FILES}
_FILE_NEEDS = ("time", "coordinates", "every", "start", "end")


@dataclass(frozen=True)
class Cell:
    """One run: a method, an ε, a start (a tick, or for circles a share of the data) and a seed."""

    method: str
    epsilon: float
    t0: float
    seed: int

    def __str__(self) -> str:
        return f"{self.method}, ε = {self.epsilon:g}, t0 = {self.t0:g}, seed {self.seed}"


@dataclass(frozen=True)
class Experiment:
    """A checked experiment. ``base`` is the folder in which its files are."""

    name: str
    data: dict[str, Any]
    domain: dict[str, Any]
    methods: tuple[str, ...]
    epsilons: tuple[float, ...]
    start_after: tuple[float, ...]
    seeds: tuple[int, ...]
    measure_every: int
    queries: dict[str, int]
    base: Path

    @property
    def private(self) -> bool:
        """Whether the data comes from a file, so that everything computed from it is private."""
        return "file" in self.data

    def cells(self) -> Iterator[Cell]:
        """Yield all runs, seed by seed, so that an interrupted experiment has whole comparisons."""
        for seed in self.seeds:
            for epsilon in self.epsilons:
                for t0 in self.start_after:
                    yield from (Cell(method, epsilon, t0, seed) for method in self.methods)

    def setting(self) -> str:
        """Return, as text, what all runs share besides files: data, domain, queries, when to measure."""
        shared = {"data": self.data, "domain": self.domain, "queries": self.queries, "every": self.measure_every}
        return json.dumps(shared, sort_keys=True, default=str)


def load_experiment(path: str | Path, data_dir: str | Path | None = None) -> Experiment:
    """Read and check an experiment file; its data is looked for in ``data_dir``, or else beside it."""
    path = Path(path)
    try:
        spec = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        raise ConfigError(f"there is no experiment file {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    try:
        return read_experiment({"name": path.stem} | spec, data_dir or path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def read_experiment(spec: dict[str, Any], base: str | Path = ".") -> Experiment:
    """Check an experiment given as plain data, as the TOML file has it.

    >>> spec = {"data": {"preset": "circles-a"}, "methods": ["phdstream"], "epsilons": [1], "start_after": [0.1]}
    >>> [cell.seed for cell in read_experiment(spec | {"seeds": [1, 2]}).cells()]
    [1, 2]
    """
    _check_keys(spec, _TOP, "an experiment")
    data, domain = _data(spec)
    share = "circles" in data
    for name in (methods := _listed(spec, "methods", ["phdstream", "baseline-1", "baseline-3"])):
        contender(name)
    return Experiment(
        _text(spec.get("name", data["name"]), "name"),
        {key: value for key, value in data.items() if key != "name"},
        domain,
        tuple(methods),
        tuple(_number(value, "epsilons") for value in _listed(spec, "epsilons", None)),
        tuple(_start(value, share) for value in _listed(spec, "start_after", [0.1 if share else 1])),
        tuple(_whole(value, "seeds", 0) for value in _listed(spec, "seeds", [1])),
        _whole(spec.get("measure_every", 10), "measure_every"),
        _queries(spec.get("queries", {})),
        Path(base),
    )


def _data(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the data and the domain, presets filled in."""
    given = spec.get("data")
    if not isinstance(given, dict):
        raise ConfigError("[data] is missing: it names a preset, or a file with its columns and ticks.")
    _check_keys(given, _DATA, "[data]")
    name = given.get("preset")
    if name is not None and name not in DATA:
        raise ConfigError(f"[data] has an unknown preset {name!r}: {did_you_mean(str(name), DATA)}")
    data, domain = DATA[name] if name is not None else ({}, None)
    data = data | {key: value for key, value in given.items() if key != "preset"}
    domain = spec.get("domain", domain)
    if not isinstance(domain, dict):
        raise ConfigError("[domain] is missing: it says where points can be, and is never taken from the data.")
    _check_keys(domain, _DOMAIN, "[domain]")
    _check_data(data)
    return {"name": name or Path(str(data["file"])).stem} | data, domain


def _check_data(data: dict[str, Any]) -> None:
    for key in () if "circles" in data else ("file", *_FILE_NEEDS):
        if key not in data:
            raise ConfigError(f"[data] needs '{key}' (or a preset).")
    names = data.get("coordinates", ["x", "y"])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError('[data] coordinates must be a list of column names, such as ["lon", "lat"].')
    if "sign" in data and ("points" in data or "lifetime" in data):
        raise ConfigError("[data] with 'sign' has its own deletes: 'points' and 'lifetime' cannot be combined with it.")
    for key in {"points", "batch"} & set(data):
        _whole(data[key], f"[data] {key}")
    if wrong := sorted(({"file", *_FILE_NEEDS, "sign", "lifetime"} if "circles" in data else {"batch"}) & set(data)):
        raise ConfigError(f"[data] '{wrong[0]}' does not go with this data.")


def _check_keys(given: dict[str, Any], known: set[str], what: str) -> None:
    for key in given:
        if key not in known:
            raise ConfigError(f"{what} has an unknown key '{key}': {did_you_mean(key, known)}")


def _listed(spec: dict[str, Any], key: str, default: list[Any] | None) -> list[Any]:
    values = spec.get(key, default)
    if not isinstance(values, list) or not values:
        raise ConfigError(f"{key} must be a list with at least one value.")
    if len(set(map(str, values))) < len(values):
        raise ConfigError(f"{key} has a value twice.")
    return values


def _queries(given: Any) -> dict[str, int]:
    if not isinstance(given, dict):
        raise ConfigError("queries must be a section of sizes and numbers, such as small = 1000.")
    _check_keys(given, set(QUERY_NUMBERS), "[queries]")
    return {size: _whole(given.get(size, number), "queries") for size, number in QUERY_NUMBERS.items()}


def _start(value: Any, share: bool) -> float:
    if not share:
        return _whole(value, "start_after")
    if _number(value, "start_after") >= 1:
        raise ConfigError(f"start_after is a share of the data for circles, above 0 and below 1, not {value!r}.")
    return float(value)


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ConfigError(f"{what} must be numbers above 0, not {value!r}.")
    return float(value)


def _whole(value: Any, what: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{what} must be whole numbers of at least {least}, not {value!r}.")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{what} must be a non-empty text, not {value!r}.")
    return value
