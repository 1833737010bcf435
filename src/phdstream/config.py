"""The configuration file: TOML, checked as a whole before anything is read or written."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from phdstream.configured_domain import DOMAIN_FILES, configured_domain
from phdstream.domains import Domain, Hierarchy
from phdstream.errors import ConfigError, InputError, PhdstreamError, did_you_mean
from phdstream.privacy import Simulation, Unit, User, unit_from_dict
from phdstream.sinks.writers import check_format
from phdstream.sources.files import Columns
from phdstream.sources.ticks import Clock
from phdstream.stream import PHDStream
from phdstream.streaming import Stream
from phdstream.tracking import TrackingStream

__all__ = ["Config", "load_config"]

_KNOWN: dict[str, tuple[set[str], set[str]]] = {  # section: (required, optional)
    "input": ({"files", "coordinates"}, {"time", "sign", "user", "bad_rows"}),
    "ticks": (set(), {"every", "start", "end", "rows"}),
    "domain": ({"type"}, {"bounds", "fanout", "depth", "dimension", "crs", "tree_crs", *DOMAIN_FILES, "snap"}),
    "privacy": ({"epsilon", "unit"}, {"tree_share"}),
    "stream": (set(), {"method", "counter", "threshold", "window", "start_after", "max_nodes"}),
    "output": ({"releases", "state"}, {"format"}),
    "simulation": ({"seed"}, set()),
}
_OPTIONAL_SECTIONS = {"stream", "simulation"}
_METHODS: dict[str, Any] = {"tracking": TrackingStream, "phdstream": PHDStream}
_ONLY_PHDSTREAM = ("counter", "threshold", "tree_share")


@dataclass(frozen=True)
class Config:
    """A checked configuration: what to read, how to cut it into ticks, what to promise, where to write."""

    files: list[Path]
    columns: Columns
    drop_bad_rows: bool
    clock: Clock | None
    rows_per_tick: int | None
    domain: Domain
    unit: Unit
    epsilon: float
    method: str
    options: dict[str, Any]
    seed: int | None
    releases: Path
    state: Path
    format: str

    def stream(self) -> Stream:
        """Return a new stream as configured. Without a sign column it is declared insert-only."""
        noise = None if self.seed is None else Simulation(self.seed)
        fixed: dict[str, Any] = {"insert_only": self.columns.sign is None, "noise": noise} | self.options
        stream: Stream = _METHODS[self.method](self.domain, self.epsilon, self.unit, **fixed)
        return stream


def load_config(path: str | Path) -> Config:
    """Read and check a configuration file; paths in it are relative to the file."""
    path = Path(path)
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    try:
        _check_keys(sections)
        config = _build(sections, path.parent)
        config.stream()  # refuses bad privacy parameters and options now
    except (PhdstreamError, TypeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return config


def _check_keys(sections: dict[str, Any]) -> None:
    for section in sections:
        if section not in _KNOWN:
            raise ConfigError(f"unknown section [{section}]: {did_you_mean(section, _KNOWN)}")
    for section, (required, optional) in _KNOWN.items():
        if section not in sections and section not in _OPTIONAL_SECTIONS:
            raise ConfigError(f"section [{section}] is missing.")
        keys = sections.get(section, {} if section in _OPTIONAL_SECTIONS else None)
        if not isinstance(keys, dict):
            raise ConfigError(f"[{section}] must be a section of names and values.")
        for key in keys:
            if key not in required | optional:
                raise ConfigError(f"[{section}] has an unknown key '{key}': {did_you_mean(key, required | optional)}")
        for key in sorted(required - set(keys)) if section in sections else ():
            raise ConfigError(f"[{section}] needs '{key}'.")


def _build(sections: dict[str, Any], base: Path) -> Config:
    given, ticks = sections["input"], sections["ticks"]
    unit = _unit(sections["privacy"]["unit"])
    columns = _columns(given, unit)
    seed = sections.get("simulation", {}).get("seed")
    clock, rows = _ticks(ticks, seed)
    if clock and columns.time is None:
        raise ConfigError("[input] needs 'time', the column that says when each event happened.")
    options = dict(sections.get("stream", {}))
    if "window" in options and columns.sign is not None:
        raise ConfigError("[stream] window makes records expire by themselves, so [input] must have no 'sign'.")
    if "tree_share" in sections["privacy"]:
        options["tree_share"] = sections["privacy"]["tree_share"]
    method = _method(options)
    domain = configured_domain(sections["domain"], columns.coordinates, base)
    columns = replace(columns, names=isinstance(domain, Hierarchy))
    output = sections["output"]
    releases, state = (base / _text(output[key], f"[output] {key}") for key in ("releases", "state"))
    if releases.resolve() == state.resolve() or releases.resolve() in state.resolve().parents:
        raise ConfigError("[output] state is private and must lie outside releases, which is for the public.")
    return Config(
        _files(given["files"], base), columns, _bad_rows(given), clock, rows, domain, unit,
        sections["privacy"]["epsilon"], method, options, seed, releases, state, _format(output, domain),
    )  # fmt: skip


def _method(options: dict[str, Any]) -> str:
    """Take the method out of the options, and check that the others go with it."""
    method = options.pop("method", "tracking")
    if method not in _METHODS:
        raise ConfigError(f"[stream] has an unknown method {method!r}: {did_you_mean(str(method), _METHODS)}")
    for key in _ONLY_PHDSTREAM if method == "tracking" else ():
        if key in options:
            raise ConfigError(f"{key} is an option of PHDStream: set method = 'phdstream' in [stream], or drop it.")
    return str(method)


def _format(output: dict[str, Any], domain: Domain) -> str:
    try:
        return check_format(_text(output.get("format", "parquet"), "[output] format"), domain)
    except InputError as error:
        raise ConfigError(f"[output] {error}") from None


def _unit(spec: Any) -> Unit:
    return unit_from_dict({"type": spec} if isinstance(spec, str) else spec)


def _columns(given: dict[str, Any], unit: Unit) -> Columns:
    names = given["coordinates"]
    if not isinstance(names, list) or not names:
        raise ConfigError('[input] coordinates must be a list of column names, such as ["lon", "lat"].')
    for key in ("time", "sign", "user"):
        _text(given.get(key, "-"), f"[input] {key}")
    if isinstance(unit, User) and "user" not in given:
        raise ConfigError("[privacy] unit is a user, so [input] needs 'user', the column that names them.")
    user = given.get("user") if isinstance(unit, User) else None
    coordinates = tuple(_text(name, "[input] coordinates") for name in names)
    return Columns(coordinates, given.get("time"), given.get("sign"), user)


def _ticks(ticks: dict[str, Any], seed: int | None) -> tuple[Clock | None, int | None]:
    if "rows" in ticks:
        if seed is None or len(ticks) > 1:
            raise ConfigError(
                "[ticks] rows cuts ticks by number of rows, which is not private (one row more moves all later ones). "
                "It is for experiments: add [simulation] with a seed and leave out every, start and end; or use "
                "those instead."
            )
        if not isinstance(ticks["rows"], int) or ticks["rows"] < 1:
            raise ConfigError("[ticks] rows must be a whole number of at least 1.")
        return None, ticks["rows"]
    missing = sorted({"every", "start", "end"} - set(ticks))
    if missing:
        raise ConfigError(
            f"[ticks] needs {', '.join(missing)}: when ticks begin and end is public, and never taken from the data."
        )
    return Clock.between(ticks["start"], ticks["end"], ticks["every"]), None


def _files(files: Any, base: Path) -> list[Path]:
    names = [files] if isinstance(files, str) else files
    if not isinstance(names, list) or not names:
        raise ConfigError("[input] files must be a file name or a list of them, in order of time.")
    return [base / _text(name, "[input] files") for name in names]


def _bad_rows(given: dict[str, Any]) -> bool:
    choice = given.get("bad_rows", "stop")
    if choice not in ("stop", "drop"):
        raise ConfigError(f'[input] bad_rows must be "stop" or "drop", not {choice!r}.')
    return bool(choice == "drop")


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{what} must be a non-empty text, not {value!r}.")
    return value
