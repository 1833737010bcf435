"""Which experiment a command line asks for: a file, a preset, or one's own events."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from phdstream.errors import ConfigError
from phdstream.evaluation.experiment import Experiment, load_experiment, read_experiment
from phdstream.evaluation.presets import preset as preset_experiment

__all__ = ["OWN_METHODS", "asked_experiment", "own_experiment"]

OWN_METHODS = ("phdstream", "phdstream-block", "phdstream-4", "phdstream-4-ticks", "baseline-1", "baseline-3")
"""What is compared on one's own data: what one could choose, and the baseline that shows what is possible."""


def asked_experiment(
    file: Path | None,
    preset: str | None,
    reduced: bool,
    data: Path | None,
    own: dict[str, str | None],
    data_dir: Path | None,
) -> Experiment:
    """Return the experiment; exactly one of ``file``, ``preset`` and ``data`` must be given."""
    if sum(choice is not None for choice in (file, preset, data)) != 1:
        raise ConfigError("name one thing to evaluate: an experiment file, --preset, or --data.")
    if reduced and preset is None:
        raise ConfigError("--reduced goes with --preset.")
    if file is not None:
        return load_experiment(file, data_dir)
    if data is not None:
        return own_experiment(data, own)
    assert preset is not None
    return read_experiment(
        {"name": preset + "-reduced" * reduced} | preset_experiment(preset, reduced), data_dir or "."
    )


def own_experiment(data: Path, own: dict[str, str | None]) -> Experiment:
    """Return the experiment on one's own events: all private methods, and the baseline that shows what is possible.

    >>> asked = {"time": "time", "coordinates": "lon,lat", "every": "1d", "start": "2014-04-01", "end": "2014-05-01"}
    >>> asked |= {"domain": "new_york_state", "epsilons": "0.5,1", "start_after": "1"}
    >>> own_experiment(Path("events.parquet"), asked).domain
    {'type': 'region', 'polygons': 'new_york_state'}
    """
    for key in ("start", "end"):
        if not own.get(key):
            raise ConfigError(f"--data needs --{key}: when there can be events is never taken from the data.")
    section = {
        "file": data.name,
        "time": own["time"],
        "coordinates": str(own["coordinates"]).split(","),
        "every": own["every"],
        "start": _moment(own["start"], "start"),
        "end": _moment(own["end"], "end"),
    }
    spec: dict[str, Any] = {
        "methods": [OWN_METHODS[0], _tracking(own), *OWN_METHODS[1:]],
        "epsilons": _numbers(own["epsilons"], "epsilons"),
        "start_after": [int(t0) for t0 in _numbers(own["start_after"], "start_after")],
        "seeds": [1, 2, 3],
        "data": section | {key: own[key] for key in ("sign", "lifetime") if own.get(key)},
        "domain": _domain(own),
    }
    return read_experiment(spec, data.parent)


def _tracking(own: dict[str, str | None]) -> str:
    """Return tracking as `phdstream run` would do it: declared insert-only where nothing is deleted."""
    return "tracking" if own.get("sign") or own.get("lifetime") else "tracking-insert-only"


def _domain(own: dict[str, str | None]) -> dict[str, Any]:
    """Return the domain: a box, a packaged region, or a file of polygons or, with a distance to snap, of lines."""
    if bool(own.get("bounds")) == bool(own.get("domain")):
        raise ConfigError(
            "--data needs --bounds or --domain, one of them: where there can be events is never taken from the data."
        )
    systems = {key: own[key] for key in ("crs", "tree_crs") if own.get(key)}
    if own.get("bounds"):
        west, south, east, north = _bounds(own["bounds"])
        return {"type": "box", "bounds": [[west, east], [south, north]]} | systems
    named = str(own["domain"])
    place = str(Path(named).resolve()) if Path(named).suffix else named
    if own.get("snap"):
        return {"type": "network", "lines": place, "snap": _numbers(own["snap"], "snap")[0]} | systems
    return {"type": "region", "polygons": place} | systems


def _bounds(text: str | None) -> list[float]:
    numbers = _numbers(text, "bounds")
    if len(numbers) != 4:
        raise ConfigError("--bounds must be four numbers: west,south,east,north.")
    return numbers


def _numbers(text: str | None, what: str) -> list[float]:
    try:
        return [float(part) for part in str(text).split(",")]
    except ValueError:
        raise ConfigError(f"--{what.replace('_', '-')} must be numbers with commas between, not {text!r}.") from None


def _moment(text: str | None, what: str) -> datetime:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        raise ConfigError(f"--{what} must be a date or time such as 2014-04-01, not {text!r}.") from None
