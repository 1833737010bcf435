"""Counts beside the areas they are of: a layer's own columns and names, then the answer. Public."""

from __future__ import annotations

from typing import Any

import numpy as np

from phdstream.domains.shapes.projection import crs_name
from phdstream.errors import InputError
from phdstream.release.tables import check_kind, table_as, with_metadata

__all__ = ["area_names", "as_frame", "is_frame", "is_series", "joined", "layer_columns"]


def is_frame(layer: Any) -> bool:
    """Tell whether a layer is a GeoDataFrame: shapes with columns beside them."""
    return hasattr(layer, "to_crs") and hasattr(layer, "columns")


def is_series(layer: Any) -> bool:
    """Tell whether a layer is a GeoSeries: shapes with an index and a coordinate system, and nothing beside them."""
    return hasattr(layer, "to_crs") and hasattr(layer, "to_frame")


def as_frame(layer: Any) -> Any:
    """Return a GeoSeries as a GeoDataFrame without any other column; one that is a GeoDataFrame as it is."""
    return layer if is_frame(layer) else layer.to_frame("geometry")


def area_names(layer: Any) -> list[str]:
    """Return what to call a GeoDataFrame's rows: its first column of text, or their positions."""
    columns = (layer[name] for name in layer.columns if name != layer.geometry.name)
    texts = [list(column) for column in columns if len(column) and all(isinstance(x, str) for x in column)]
    return texts[0] if texts else [f"Area {i + 1}" for i in range(len(layer))]


def layer_columns(layer: Any) -> dict[str, Any]:
    """Return a GeoDataFrame's own columns without its shapes, its index first if that has a name."""
    frame = layer.reset_index() if any(name is not None for name in layer.index.names) else layer
    own = frame.drop(columns=frame.geometry.name)
    return {str(name): own[name].to_numpy() for name in own.columns}


def joined(layer: Any, answer: dict[str, Any], metadata: dict[str, Any], to: Any = None, repeat: int = 1) -> Any:
    """Return a layer's rows with an answer's columns: a GeoDataFrame in the layer's own coordinates, unless told else.

    A layer that is repeated has all its rows anew for each of so many ticks.
    """
    taken = [name for name in answer if name in map(str, layer.columns)]
    if taken:
        raise InputError(
            f"the layer has a column {taken[0]!r} of its own, where the answer's would be: rename it, or leave it out."
        )
    if to is not None:
        check_kind(to)
    if to is None or to == "geopandas":
        frame = layer.iloc[np.tile(np.arange(len(layer)), repeat)] if repeat > 1 else layer
        return with_metadata(frame.assign(**answer), metadata)
    own = {name: np.tile(values, repeat) for name, values in layer_columns(layer).items()}
    return table_as(to, own | answer, metadata, lambda: (np.tile(layer.geometry, repeat), crs_name(layer.crs)))
