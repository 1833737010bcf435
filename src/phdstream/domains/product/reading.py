"""Rows of a product, from what users hold. One row is one event, whatever it is a row of, and is read by itself."""

from __future__ import annotations

from datetime import datetime
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.domains.columns import column_names, is_missing, named_column, plain_column
from phdstream.domains.product.attribute import Attribute
from phdstream.domains.product.category import Category
from phdstream.errors import InputError

if TYPE_CHECKING:
    from phdstream.domains.product.product import Product

__all__ = ["Positions", "read_rows"]


class Positions(np.ndarray[Any, Any]):
    """Rows that are numbers already, coordinates and positions of values: not read again."""


def read_rows(product: Product, data: Any) -> NDArray[Any]:
    """Return rows as numbers, one for each row that came. See `Product.points`."""
    if isinstance(data, Positions) or data is None:
        return np.empty((0, product.dimension)).view(Positions) if data is None else data
    there = column_names(data)
    table = (data, there) if there is not None else _columns(data, product.names)
    parts = [_place(product, table, data)]
    for attribute in product.attributes:
        parts.append(_read(attribute, _column(attribute, *table)).reshape(-1, 1))
    if len({len(part) for part in parts}) > 1:
        raise InputError("the columns of rows must be equally long.")
    return np.concatenate(parts, axis=1).view(Positions)


def _place(product: Product, table: tuple[Any, list[Any]], data: Any) -> Floats:
    place = product.parts[0]
    if isinstance(place, Category):
        return _read(place, _column(place, *table)).reshape(-1, 1)
    return np.asarray(place.points(data if hasattr(data, "to_crs") else table[0]), dtype=np.float64)


def _columns(data: Any, names: tuple[str, ...]) -> tuple[dict[str, Any], list[Any]]:
    """Return the columns of an array or a list of rows, in the order of the product's names."""
    rows = np.ma.asanyarray(data, dtype=object) if isinstance(data, np.ma.MaskedArray) else data
    try:
        array = rows if isinstance(rows, np.ndarray) else np.array(list(rows), dtype=object)
    except (TypeError, ValueError):
        array = np.empty(())
    if array.shape == (0,):
        array = array.reshape(0, len(names))
    if array.ndim != 2 or array.shape[1] != len(names):
        raise InputError(
            f"rows come as a table with the columns {', '.join(names)}, or as a list or an array of rows of these "
            f"{len(names)} values, in this order."
        )
    return {name: array[:, i] for i, name in enumerate(names)}, list(names)


def _column(attribute: Attribute, table: Any, there: list[Any]) -> Any:
    """Return the column of an attribute: that of its name, or else the one that it is told from."""
    name = attribute.name if attribute.name in there else attribute.column
    return named_column(table, there, name, (attribute.name,))


def _read(attribute: Attribute, column: Any) -> Floats:
    return attribute.read(plain_column(_arrow(column)))


def _arrow(column: Any) -> pa.Array:
    """Return a column of any make as Arrow's. One of several kinds of things is refused: what a value is taken to be
    must not depend on what stands in other rows.
    """
    if hasattr(column, "to_arrow"):  # Polars
        column = column.to_arrow()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.Array):
        return column
    if isinstance(column, np.ma.MaskedArray):
        pairs = zip(np.ma.getdata(column), np.ma.getmaskarray(column), strict=True)
        column = [None if hidden else value for value, hidden in pairs]
    try:
        if getattr(column, "dtype", np.dtype(object)) == np.dtype(object):
            column = [None if is_missing(item) else item for item in column]
            if len({_kind(item) for item in column if item is not None}) > 1:
                raise TypeError
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InputError(
            "the values of an attribute must be all text, all numbers or all moments (with a time zone, or all "
            "without), of a size that 64 bits hold; in one column there is something else."
        ) from None


def _kind(item: Any) -> str:
    if isinstance(item, datetime):
        return "moment" if item.tzinfo is None else "moment in a zone"
    number = isinstance(item, Real) and not isinstance(item, bool | np.bool_)
    return "text" if isinstance(item, str) else "number" if number else type(item).__name__
