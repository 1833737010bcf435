"""`Product`: a place with attributes, each a `Category`, `Bins`, `TimeOfDay` or `DayOfWeek`, as one domain."""

from __future__ import annotations

from typing import Any

from phdstream.domains.product.attribute import Attribute
from phdstream.domains.product.bins import Bins
from phdstream.domains.product.category import Category
from phdstream.domains.product.product import Product
from phdstream.domains.product.times import DayOfWeek, TimeOfDay
from phdstream.errors import InputError, did_you_mean, shown

__all__ = ["Attribute", "Bins", "Category", "DayOfWeek", "Product", "TimeOfDay", "attribute_from_dict"]

_KINDS: dict[str, Any] = {"category": Category, "bins": Bins, "time_of_day": TimeOfDay, "day_of_week": DayOfWeek}


def attribute_from_dict(spec: Any) -> Attribute:
    """Return the attribute that its ``to_dict`` described, or that a configuration file names.

    >>> attribute_from_dict({"type": "bins", "name": "age", "edges": [0, 18, 65]})
    Bins('age', [0.0, 18.0, 65.0])
    """
    fields = dict(spec) if isinstance(spec, dict) else {}
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(f"unknown type of attribute {shown(kind)}: {did_you_mean(str(kind), _KINDS)}")
    try:
        made: Attribute = _KINDS[kind](**fields)
    except TypeError as error:
        raise InputError(f"attribute of type '{kind}': {error}.") from None
    return made
