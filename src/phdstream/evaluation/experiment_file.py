"""An experiment as a TOML file: read, and checked as a whole before anything is computed."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from phdstream.errors import ConfigError, did_you_mean
from phdstream.evaluation.circles import CIRCLES
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.methods import MethodTable, standard_methods
from phdstream.evaluation.queries import QUERY_NUMBERS
from phdstream.io.domain_table import DOMAIN_FILES

__all__ = ["example", "load_experiment", "read_experiment"]

_TOP = {"name", "data", "domain", "methods", "epsilons", "start_after", "seeds", "measure_every", "queries"}
_FILE_NEEDS = ("file", "time", "coordinates", "every", "start", "end")
_FILE = {*_FILE_NEEDS, "sign", "lifetime", "points"}
_SIMULATED = {"circles", "points", "batch"}
_DOMAIN = {"type", "bounds", "fanout", "depth", "resolution", "crs", "tree_crs", "snap", *DOMAIN_FILES}
_UNIT_SQUARE = {"type": "box", "bounds": [[0, 1], [0, 1]], "depth": 20}
_COMPARED = ("phdstream", "baseline-1", "baseline-3")
"""What is compared with tracking unless told otherwise: what one could choose, and what shows how good it can get."""
_FLOORS = ("nothing", "uniform")
"""What anything worth publishing must beat: compared too, unless told otherwise."""


def example() -> str:
    """Return an experiment file to start from, with comments."""
    return (files("phdstream.evaluation") / "example.toml").read_text(encoding="utf-8")


def load_experiment(path: str | Path) -> Experiment:
    """Read and check an experiment file; the files it names are relative to it."""
    path = Path(path).expanduser()
    try:
        spec = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}; phdstream evaluate --example prints one to start from.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, nested too deeply
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    try:
        return read_experiment({"name": path.stem} | spec, path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def read_experiment(
    spec: dict[str, Any], base: str | Path = ".", methods: MethodTable = standard_methods
) -> Experiment:
    """Check an experiment given as plain data, as the TOML file has it.

    >>> spec = {"data": {"circles": "growing"}, "methods": ["phdstream"], "epsilons": [1], "start_after": [0.1]}
    >>> [trial.seed for trial in read_experiment(spec | {"seeds": [1, 2]}).trials()]
    [1, 2]
    """
    _check_keys(spec, _TOP, "an experiment")
    data, domain = _data(spec)
    share = "circles" in data
    for name in (
        named := _listed(spec, "methods", [(ours := _tracking(data)), f"{ours}-4-ticks", *_COMPARED, *_FLOORS])
    ):
        if name not in (known := methods()):
            raise ConfigError(f"unknown method {name!r}: {did_you_mean(str(name), known)}")
    return Experiment(
        _text(spec.get("name", Path(str(data.get("file", "circles"))).stem), "name"),
        data,
        domain,
        tuple(named),
        tuple(_number(value, "epsilons") for value in _listed(spec, "epsilons", [0.5, 1.0, 2.0])),
        tuple(_start(value, share) for value in _listed(spec, "start_after", [0.1 if share else 1])),
        tuple(_whole(value, "seeds", 0) for value in _listed(spec, "seeds", [1, 2, 3])),
        _whole(spec.get("measure_every", 10), "measure_every"),
        _queries(spec.get("queries", {})),
        Path(base),
        methods,
    )


def _tracking(data: dict[str, Any]) -> str:
    """Return tracking as `phdstream run` would do it: declared insert-only where nothing is deleted."""
    deletes = "sign" in data or "lifetime" in data or data.get("circles") == "moving"
    return "tracking" if deletes else "tracking-insert-only"


def _data(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the data and the domain; circles have a domain of their own."""
    data = spec.get("data")
    if not isinstance(data, dict):
        raise ConfigError("[data] is missing: it names a file with its columns and ticks, or circles.")
    if "circles" in data:
        data = _circles(data)
    else:
        _check_file(data)
    domain = spec.get("domain", _UNIT_SQUARE if "circles" in data else None)
    if not isinstance(domain, dict):
        raise ConfigError("[domain] is missing: it says where points can be, and is never taken from the data.")
    if domain.get("type") == "product":
        raise ConfigError(
            "experiments compare points in rectangles, not rows: give the place alone as [domain]. What attributes "
            "cost is measured in docs/attributes.md."
        )
    _check_keys(domain, _DOMAIN, "[domain]")
    return data, domain


def _circles(data: dict[str, Any]) -> dict[str, Any]:
    _check_keys(data, _SIMULATED, "[data] with 'circles'")
    if data["circles"] not in CIRCLES:
        raise ConfigError(f"[data] circles are {' or '.join(CIRCLES)}, not {data['circles']!r}.")
    data = {"points": 25_000, "batch": 500} | data
    for key in ("points", "batch"):
        _whole(data[key], f"[data] {key}")
    return data


def _check_file(data: dict[str, Any]) -> None:
    _check_keys(data, _FILE, "[data]")
    for key in _FILE_NEEDS:
        if key not in data:
            raise ConfigError(f"[data] needs '{key}'.")
    _text(data["file"], "[data] file")
    names = data["coordinates"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError('[data] coordinates must be a list of column names, such as ["lon", "lat"].')
    if "sign" in data and ("points" in data or "lifetime" in data):
        raise ConfigError("[data] with 'sign' has its own deletes: 'points' and 'lifetime' cannot be combined with it.")
    if "points" in data:
        _whole(data["points"], "[data] points")


def _check_keys(given: dict[str, Any], known: set[str], what: str) -> None:
    for key in given:
        if key not in known:
            raise ConfigError(f"{what} has an unknown key '{key}': {did_you_mean(key, known)}")


def _listed(spec: dict[str, Any], key: str, default: list[Any]) -> list[Any]:
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
