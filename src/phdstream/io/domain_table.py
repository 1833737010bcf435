"""The domain that a configuration file names: files are read, packaged geometries found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from phdstream.domains import Domain, Hierarchy, domain_from_dict
from phdstream.domains.network import Network
from phdstream.domains.outlines import land, new_york_state
from phdstream.domains.product import Product, attribute_from_dict
from phdstream.domains.region import Region
from phdstream.errors import InputError

__all__ = ["DOMAIN_FILES", "configured_domain"]

DOMAIN_FILES = ("polygons", "lines", "places")
"""Keys of [domain] that name a file."""
_PACKAGED = {"land": land, "new_york_state": new_york_state}


def configured_domain(section: dict[str, Any], coordinates: Sequence[str], base: Path) -> Domain:
    """Return the domain of a [domain] section; its coordinates are called as the input's columns are."""
    fields = dict(section)
    kind = fields.get("type")
    if kind == "hierarchy":
        return _hierarchy(fields, coordinates, base)
    if kind == "product":
        return _product(fields, coordinates, base)
    fields["names"] = list(coordinates)
    if kind == "region":
        return _region(fields, base)
    if kind == "network":
        return Network(base / Path(_file(fields, "lines")).expanduser(), **_others(fields, "lines"))
    return domain_from_dict(fields)


def _product(fields: dict[str, Any], coordinates: Sequence[str], base: Path) -> Product:
    """Return a place with attributes; the values of a category may be a table in a file."""
    place, attributes = fields.get("place"), fields.get("attributes")
    if not isinstance(place, dict) or not isinstance(attributes, list):
        raise InputError(
            "[domain] of type 'product' needs a place, [domain.place] with a type of its own, and attributes, each in "
            "a [[domain.attributes]]."
        )
    if extra := set(fields) - {"type", "place", "attributes", "schedule"}:
        raise InputError(
            f"[domain] of type 'product' has place, attributes and schedule, not '{min(extra)}': does that belong into "
            "[domain.place]?"
        )
    made = []
    for spec in attributes:
        if isinstance(spec, dict) and isinstance(spec.get("values"), str):
            spec = spec | {"values": _table(base / Path(spec["values"]).expanduser())}
        made.append(attribute_from_dict(spec))
    return Product(configured_domain(place, coordinates, base), *made, schedule=fields.get("schedule"))


def _region(fields: dict[str, Any], base: Path) -> Region:
    polygons = _file(fields, "polygons")
    others = _others(fields, "polygons")
    if polygons in _PACKAGED:
        return Region(_PACKAGED[polygons](), **({"crs": "EPSG:4326"} | others))
    return Region(base / Path(polygons).expanduser(), **others)


def _hierarchy(fields: dict[str, Any], coordinates: Sequence[str], base: Path) -> Hierarchy:
    path = base / Path(_file(fields, "places")).expanduser()
    name = coordinates[0] if len(coordinates) == 1 else "place"
    return Hierarchy(_table(path), names=(name,), **_others(fields, "places"))


def _table(path: Path) -> pa.Table:
    """Return a table of names, one column a level, as text."""
    try:
        table = pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
        return table.cast(pa.schema([(name, pa.string()) for name in table.column_names]))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}.") from None
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(f"{path} cannot be read as a table of places, one column a level, in UTF-8.") from None


def _file(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(f"[domain] of type '{fields['type']}' needs '{key}', the name of a file.")
    return value


def _others(fields: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in ("type", key)}
