"""Configuration files with odd values, odd structure and damaged bytes: `load_config` refuses them, or takes them."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import shapely

from fuzz.damage import damaged
from fuzz.values import mutated
from phdstream.app.config import load_config

__all__ = ["prepare", "run"]

_DAY = datetime.date(2024, 1, 1)
_BASE: dict[str, Any] = {
    "input": {"files": ["events.csv"], "coordinates": ["x", "y"], "time": "when"},
    "ticks": {"every": "1d", "start": _DAY, "end": datetime.date(2024, 1, 8)},
    "domain": {"type": "box", "bounds": [[0, 1], [0, 1]]},
    "privacy": {"epsilon": 1.0, "unit": "event"},
    "output": {"releases": "out", "state": "private"},
}
_DOMAINS: list[dict[str, Any]] = [
    {"type": "box", "bounds": [[0, 1], [0, 1]], "depth": 12, "fanout": 4, "crs": "EPSG:2263"},
    {"type": "cube", "dimension": 2, "depth": 8},
    {"type": "globe", "depth": 20},
    {"type": "region", "polygons": "square.geojson", "depth": 8, "tree_crs": "EPSG:2263"},
    {"type": "region", "polygons": "square.geojson"},
    {"type": "network", "lines": "street.geojson", "snap": 5.0, "tree_crs": "EPSG:32618"},
    {"type": "hierarchy", "places": "places.csv"},
]
_INPUTS: list[dict[str, Any]] = [
    {"sign": "sign", "bad_rows": "drop"}, {"delimiter": ";", "decimal": ","}, {"encoding": "latin-1"},
    {"time_format": "%d.%m.%Y %H:%M"}, {"memory": "500MB"}, {"files": "*.csv"},
    {"delimiter": "\t", "encoding": "utf-16"}, {"encoding": "iso2022_jp"},
]  # fmt: skip
_TICKS: list[dict[str, Any]] = [
    {"every": "6h", "start": datetime.datetime(2024, 1, 1, 6), "grace": "2h"},
    {"every": "1w", "start": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)},
    {"every": "3652058d", "start": datetime.date(1, 1, 1), "end": datetime.date(9999, 12, 31)},
    {"rows": 100},
]
_STREAMS: list[dict[str, Any]] = [
    {"method": "phdstream", "counter": "binary", "threshold": 5, "window": 3}, {"method": "tracking", "window": 7},
    {"method": "phdstream", "counter": "hybrid", "start_after": 4, "max_nodes": 1000}, {"max_nodes": 10**6},
]  # fmt: skip
_USER: Any = {"type": "user", "inserts": 4, "deletes": 4}
_BAD_UNITS: list[Any] = ["user", [[]], {"type": "event", "k": 1}]


def prepare(folder: Path) -> None:
    """Write the files that configurations name."""
    square, street = shapely.box(-74.1, 40.5, -73.9, 40.7), shapely.LineString([(-74, 40.6), (-74.01, 40.61)])
    (folder / "square.geojson").write_text(shapely.to_geojson(square))
    (folder / "street.geojson").write_text(shapely.to_geojson(street))
    (folder / "places.csv").write_text("county,town\nA,a\nA,b\nB,c\n")


def run(rng: Random, folder: Path) -> None:
    """Load one configuration file."""
    config = {section: dict(values) for section, values in _BASE.items()}
    for section, choices in (("domain", _DOMAINS), ("input", _INPUTS), ("ticks", _TICKS), ("stream", _STREAMS)):
        if rng.random() < 0.5:
            kept = config.get(section, {}) if section == "input" else {}
            config[section] = kept | rng.choice(choices)
    if rng.random() < 0.3:
        config["privacy"] = {"epsilon": 0.5, "unit": _USER if rng.random() < 0.9 else rng.choice(_BAD_UNITS)}
        config["input"]["user"] = "who"
    if config["domain"]["type"] == "hierarchy":
        config["input"]["coordinates"] = ["x"]
    if "rows" in config["ticks"] or rng.random() < 0.3:
        config["simulation"] = {"seed": 1}
    if rng.random() < 0.02:
        config["ticks"]["every"] = rng.choice(["99999999999999999999w", "0s", "9" * 5000 + "d", "٣d"])
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        config = _mutated(rng, config)
    content = _toml(config).encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        content = damaged(rng, content)
    path = folder / "config.toml"
    path.write_bytes(content)
    load_config(path)


def _mutated(rng: Random, config: Any) -> Any:
    """Return a configuration with something odd in it, mostly in the place of a single value."""
    section = rng.choice(list(config)) if isinstance(config, dict) and config else None
    values = config[section] if section is not None else None
    if not isinstance(values, dict) or not values or rng.random() < 0.1:
        return mutated(rng, config, plain=True)
    key = rng.choice(list(values))
    return config | {section: values | {key: mutated(rng, values[key], plain=True)}}


def _toml(config: Any) -> str:
    if not isinstance(config, dict):
        return _value(config)
    lines = [f"{_key(name)} = {_value(value)}" for name, value in config.items() if not isinstance(value, dict)]
    for name, section in config.items():
        if isinstance(section, dict):
            lines += [f"[{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in section.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False).replace("\0", "\\u0000")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return "9" * 5000 if value > 10**4000 else str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return _listed(value)
    return '""' if value is None else json.dumps(value, ensure_ascii=False).replace("\0", "\\u0000")


def _listed(value: list[Any] | tuple[Any, ...]) -> str:
    depth, inner = 0, value
    while len(inner) == 1 and isinstance(inner[0], list | tuple):  # may be too deep to descend by calls
        depth, inner = depth + 1, inner[0]
    return "[" * (depth + 1) + ", ".join(map(_value, inner)) + "]" * (depth + 1)
