"""The prior that a configuration file names: files and folders of what is public, read. Public."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from phdstream.domains.shapes.files import read_weighted_file
from phdstream.errors import ConfigError, InputError, did_you_mean
from phdstream.io.archive import open_archive
from phdstream.priors import Prior

__all__ = ["PRIOR_KEYS", "configured_prior"]

_KINDS: dict[str, set[str]] = {
    "points": {"coordinates", "weights"},
    "polygons": {"weights"},
    "lines": {"weights"},
    "raster": {"crs"},
    "releases": {"tick"},
}
"""Keys of [prior] that name a file or folder, and which others go with each."""
PRIOR_KEYS = {"about", *_KINDS, *set().union(*_KINDS.values())}
_TABLES = (".csv", ".parquet", ".pq")


def configured_prior(section: dict[str, Any], coordinates: Sequence[str], base: Path) -> Prior:
    """Return the prior of a [prior] section. Paths are relative to ``base``."""
    kinds = [key for key in _KINDS if key in section]
    if len(kinds) != 1:
        raise ConfigError(f"[prior] needs one of {', '.join(_KINDS)}: a file, or a folder of releases.")
    (kind,) = kinds
    for key in sorted(set(section) - {kind, "about", *_KINDS[kind]}):
        raise ConfigError(f"[prior] '{key}' does not go with {kind}: {did_you_mean(key, ['about', *_KINDS[kind]])}")
    about, path = section.get("about"), base / _text(section, kind)
    if kind == "releases":
        return _release(path, section.get("tick"), about)
    if not isinstance(about, str):
        raise ConfigError("[prior] needs about, a text that says where it comes from. Every release repeats it.")
    if kind == "raster":
        return Prior.from_raster(path, crs=section.get("crs"), about=about)
    weights = _text(section, "weights") if "weights" in section else None
    if kind == "points" and path.suffix.lower() in _TABLES and (table := _table(path)) is not None:
        names = section.get("coordinates", list(coordinates))
        if not isinstance(names, list) or len(names) != len(coordinates) or not set(names) <= set(table.column_names):
            raise ConfigError(
                f"[prior] coordinates must name {len(coordinates)} columns of {path}, in the domain's order."
            )
        renamed = {name: table[given] for name, given in zip(coordinates, names, strict=True)}
        own = {} if weights is None else {weights: _column(table, weights, path)}
        others = {name: table[name] for name in table.column_names if name not in names}
        return Prior.from_points(pa.table(others | own | renamed), weights, about=about)
    shapes, crs, values = read_weighted_file(path, weights)
    make = {"points": Prior.from_points, "polygons": Prior.from_polygons, "lines": Prior.from_lines}[kind]
    return make(_series(shapes, crs), values, about=about)


def _release(path: Path, tick: Any, about: Any) -> Prior:
    archive = open_archive(path)
    number = archive.last_tick if tick is None else tick
    if type(number) is not int or not archive.has(number):
        raise ConfigError(f"[prior] tick must be a tick whose release is in {path}, from 1 to {archive.last_tick}.")
    return Prior.from_release(archive.release(number), about=about)


def _series(shapes: Any, crs: str | None) -> Any:
    """Return geometries with their coordinate system, as GeoPandas has them; without one, as they are."""
    if crs is None:
        return list(shapes)
    import geopandas

    return geopandas.GeoSeries(shapes, crs=crs)


def _table(path: Path) -> pa.Table | None:
    """Return a table of numbers and names; None if its points are geometries (GeoParquet)."""
    try:
        table = pyarrow.csv.read_csv(path) if path.suffix.lower() == ".csv" else pyarrow.parquet.read_table(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}.") from None
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(f"{path} cannot be read as a table of points, in UTF-8.") from None
    return None if b"geo" in (table.schema.metadata or {}) else table


def _column(table: pa.Table, name: str, path: Path) -> Any:
    if name not in table.column_names:
        raise InputError(f"{path} has no column '{name}': {did_you_mean(name, table.column_names)}")
    return table[name]


def _text(section: dict[str, Any], key: str) -> str:
    value = section.get(key)
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(f"[prior] {key} must be a text.")
    return str(Path(value).expanduser()) if key in _KINDS else value
