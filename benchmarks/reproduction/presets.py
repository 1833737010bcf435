"""The paper's experiments by name: what `python -m benchmarks.reproduction run` runs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.reproduction.methods import paper_methods
from benchmarks.reproduction.sources import with_files
from phdstream.errors import ConfigError, did_you_mean
from phdstream.evaluation import Experiment, read_experiment

__all__ = ["DATA", "PRESETS", "paper_experiment", "preset"]

_UNIT_SQUARE = {"type": "box", "bounds": [[0, 1], [0, 1]], "depth": 20}
_GOWALLA = {
    "file": "gowalla_union.parquet",
    "time": "time",
    "coordinates": ["lon", "lat"],
    "every": "1d",
    "start": date(2009, 2, 4),
    "end": date(2010, 10, 24),
    "points": 200_000,
}
_UBER = {
    "file": "uber_apr2014_full.parquet",
    "time": "time",
    "coordinates": ["lon", "lat"],
    "every": "6h",
    "start": date(2014, 4, 1),
    "end": date(2014, 5, 1),
    "points": 100_000,
}
_TAXI = _UBER | {
    "file": "yellow_taxi_2013-01.parquet",
    "start": date(2013, 1, 1),
    "end": date(2013, 2, 1),
}
_TAXI_SAMPLE = _UBER | {
    "file": "nyc_yellow_taxi_sample_2009_2015.parquet",
    "every": "30d",
    "start": date(2009, 1, 1),
    "end": date(2015, 6, 29),
}
_LAND = {"type": "region", "polygons": "land", "depth": 20}
_STATE = {"type": "region", "polygons": "new_york_state", "depth": 20}
_BOROUGHS = {"type": "region", "polygons": "geometry/nyc_boroughs_nybb.geojson", "depth": 20}
_STREETS = {
    "type": "network",
    "lines": "geometry/manhattan_osmnx.gpkg",
    "crs": "EPSG:4326",
    "tree_crs": "EPSG:32618",
    "snap": 50,
    "depth": 20,
}

DATA: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "circles-a": ({"circles": "growing", "points": 50_000, "batch": 500}, _UNIT_SQUARE),
    "circles-b": ({"circles": "moving", "points": 25_000, "batch": 500}, _UNIT_SQUARE),
    "gowalla": (_GOWALLA, _LAND),
    "gowalla-300-ticks": (_GOWALLA | {"end": date(2009, 12, 1)}, _LAND),
    "gowalla-30-day": (_GOWALLA | {"lifetime": "30d"}, _LAND),
    "uber-state": (_UBER, _STATE),
    "uber-boroughs": (_UBER, _BOROUGHS),
    "uber-streets": (_UBER, _STREETS),
    "taxi-state": (_TAXI, _STATE),
    "taxi-boroughs": (_TAXI, _BOROUGHS),
    "taxi-streets": (_TAXI, _STREETS),
    "taxi-sample-state": (_TAXI_SAMPLE, _STATE),
    "taxi-sample-streets": (_TAXI_SAMPLE, _STREETS),
}
"""The paper's data: what [data] and [domain] say. Uber stands in for the paper's yellow taxis.

The paper says New York State; the authors' script loads the five boroughs. Both are here.
"""

_EVERYWHERE = ["phdstream", "baseline-1", "baseline-3", "as-published-not-private", "nothing", "uniform"]
"""In every preset, with the tracking that fits the data."""
_BASELINES_2 = ["baseline-2", "baseline-2-authors"]
_ALL = [*_EVERYWHERE, *_BASELINES_2, "phdstream-block", "phdstream-published-not-private"]
_CIRCLES = [*_ALL, "phdstream-4"]
_BLOCKS = [*_EVERYWHERE, "phdstream-block", *(f"phdstream-block-{size}" for size in (2, 4, 16, 32))]
_SENSITIVITY = [*_EVERYWHERE, "phdstream-record", "phdstream-half-epsilon", "as-printed-not-private"]
_GOWALLA_T0, _DELETION_T0, _NEW_YORK_T0 = [100, 200, 300, 400], [150, 200, 250, 300], [1, 2, 5, 10]
"""Those of the authors' script; its 0 for New York is our first tick."""


def _paper(
    data: str, methods: list[str], start_after: Sequence[float], measure_every: int, **changes: Any
) -> dict[str, Any]:
    section, domain = DATA[data]
    deletes = "lifetime" in section or section.get("circles") == "moving"
    return {
        "methods": ["tracking" if deletes else "tracking-insert-only", *methods],
        "epsilons": [0.5, 1.0, 2.0],
        "start_after": list(start_after),
        "seeds": [1, 2, 3, 4, 5],
        "measure_every": measure_every,
        "data": section | changes,
        "domain": domain,
    }


PRESETS: dict[str, dict[str, Any]] = {
    "circles-a": _paper("circles-a", _CIRCLES, [0.1, 0.3, 0.5], 10),
    "circles-b": _paper("circles-b", _CIRCLES, [0.1, 0.3, 0.5], 14),
    "circles-a-batch-100": _paper("circles-a", _EVERYWHERE, [0.1], 50, batch=100),
    "circles-a-batch-2000": _paper("circles-a", _EVERYWHERE, [0.1], 3, batch=2_000),
    "circles-b-batch-100": _paper("circles-b", _EVERYWHERE, [0.1], 70, batch=100),
    "circles-b-batch-2000": _paper("circles-b", _EVERYWHERE, [0.1], 4, batch=2_000),
    "circles-b-sensitivity": _paper("circles-b", _SENSITIVITY, [0.1], 14),
    "circles-b-blocks": _paper("circles-b", _BLOCKS, [0.1], 14),
    "gowalla": _paper("gowalla", _ALL, _GOWALLA_T0, 60),
    "gowalla-300-ticks": _paper("gowalla-300-ticks", _EVERYWHERE, [100], 20),
    "gowalla-30-day": _paper("gowalla-30-day", _ALL, _DELETION_T0, 60),
    "gowalla-30-day-sensitivity": _paper("gowalla-30-day", _SENSITIVITY, [150, 300], 60),
    "uber-state": _paper("uber-state", _ALL, _NEW_YORK_T0, 12),
    "uber-boroughs": _paper("uber-boroughs", _ALL, _NEW_YORK_T0, 20),
    "uber-streets": _paper("uber-streets", _ALL, _NEW_YORK_T0, 20),
    "taxi-state": _paper("taxi-state", _ALL, _NEW_YORK_T0, 12),
    "taxi-boroughs": _paper("taxi-boroughs", _ALL, _NEW_YORK_T0, 20),
    "taxi-streets": _paper("taxi-streets", _ALL, _NEW_YORK_T0, 20),
    "taxi-sample-state": _paper("taxi-sample-state", _ALL, _NEW_YORK_T0, 13),
    "taxi-sample-streets": _paper("taxi-sample-streets", _ALL, _NEW_YORK_T0, 13),
}
"""The paper's experiments by name, as an experiment file would have them."""


def preset(name: str, reduced: bool = False) -> dict[str, Any]:
    """Return a preset as plain data; ``reduced`` is of a size for a first look: few points, one ε, one seed.

    >>> preset("circles-b", reduced=True)["epsilons"]
    [1.0]
    """
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {name!r}: {did_you_mean(name, PRESETS)}")
    spec = deepcopy(PRESETS[name])
    return _reduce(spec) if reduced else spec


def _reduce(spec: dict[str, Any]) -> dict[str, Any]:
    few = {"small": 100, "medium": 50, "large": 20}
    small = {"points": 2_000} | ({"batch": 200} if "circles" in spec["data"] else {})
    changes = {"epsilons": [1.0], "start_after": spec["start_after"][:1], "seeds": [1], "queries": few}
    return spec | changes | {"measure_every": spec["measure_every"] * 2, "data": spec["data"] | small}


def paper_experiment(name: str, data: Path, out: Path, reduced: bool = False) -> Experiment:
    """Return a preset as an experiment on the files in the folder ``data``.

    Files as their publishers ship them are first written to ``out`` as Parquet.
    """
    spec = {"name": name + "-reduced" * reduced} | preset(name, reduced)
    return read_experiment(with_files(spec, data, out), data, paper_methods)
