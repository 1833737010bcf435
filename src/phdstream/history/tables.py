"""Tables with a row for each tick and area, or each tick and combination of values. Public."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.domains import Domain
from phdstream.history.areas import names_of
from phdstream.history.over_time import OverTime
from phdstream.history.schedule import Schedule
from phdstream.release.layers import is_frame, joined
from phdstream.release.maps import layer_shapes
from phdstream.release.tables import table_as

__all__ = ["area_table", "value_table"]


def area_table(
    domain: Domain, manifest: dict[str, Any], ticks: list[int], found: OverTime, areas: Any, to: str | None
) -> Any:
    """Return answers for ticks and areas: a GeoDataFrame if one came in, Arrow otherwise, or what ``to`` says."""
    number = found.columns["value"].shape[1]
    columns, about = _tick_columns(manifest, ticks, number), _about(manifest)
    if is_frame(areas):
        return joined(areas, columns | found.flat(), about, to, repeat=len(ticks))
    if areas is not None:
        columns["area"] = np.tile(np.array(names_of(areas, number)), len(ticks))
    if areas is None or domain.location.dimension != 2:
        return table_as(to or "arrow", columns | found.flat(), about)
    shapes = np.tile(layer_shapes(domain, areas), len(ticks))
    return table_as(to or "arrow", columns | found.flat(), about, lambda: (shapes, domain.crs))


def value_table(manifest: dict[str, Any], ticks: list[int], tables: list[Any], to: str) -> Any:
    """Return the tables of some ticks as one; those of GeoPandas go with their shapes."""
    spatial = to == "geopandas"
    names = [name for name in tables[0].columns if name != "geometry"] if spatial else tables[0].column_names
    columns = _tick_columns(manifest, ticks, len(tables[0]))
    columns |= {name: np.concatenate([table[name].to_numpy() for table in tables]) for name in names}

    def shapes() -> tuple[NDArray[Any], Any]:
        return np.concatenate([np.asarray(table.geometry) for table in tables]), tables[0].crs

    return table_as(to, columns, _about(manifest), shapes if spatial else None)


def _tick_columns(manifest: dict[str, Any], ticks: list[int], number: int) -> dict[str, Any]:
    """Return the number of each tick, and when it began and ended if ticks go by time, for so many rows each."""
    schedule = Schedule(manifest)
    columns: dict[str, Any] = {"tick": np.repeat(np.array(ticks, dtype=np.int64), number)}
    if schedule.timed:
        spans = np.array([schedule.span(tick) for tick in ticks], dtype="datetime64[us]").reshape(-1, 2)
        columns |= {name: np.repeat(spans[:, i], number) for i, name in enumerate(("start", "end"))}
    return columns


def _about(manifest: dict[str, Any]) -> dict[str, Any]:
    return {name: manifest.get(name) for name in ("privacy", "epsilon", "unit", "method", "version")}
