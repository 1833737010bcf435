"""Where things are: domains as hierarchical 64-bit codes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from phdstream.domains.apportion import divide_among_children
from phdstream.domains.box import Box
from phdstream.domains.codes import ROOT, hash_uniform
from phdstream.domains.cube import Cube
from phdstream.domains.domain import Domain
from phdstream.domains.hierarchy import Hierarchy
from phdstream.errors import InputError, did_you_mean, shown

__all__ = ["ROOT", "Box", "Cube", "Domain", "Hierarchy", "divide_among_children", "domain_from_dict", "hash_uniform"]

_KINDS = ("box", "cube", "region", "network", "hierarchy", "globe", "product")


def domain_from_dict(spec: dict[str, Any]) -> Domain:
    """Return the domain that `Domain.to_dict` described, or that a configuration file names.

    >>> domain_from_dict({"type": "box", "bounds": [[0, 1]], "depth": 4})
    Box([(0.0, 1.0)], fanout=2, depth=4)
    """
    fields = dict(spec)
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(
            f"unknown type of domain {shown(kind)}: {did_you_mean(kind if isinstance(kind, str) else '', _KINDS)}"
        )
    module = import_module(f"phdstream.domains.{kind}")  # Shapely and the like load only for those who need them
    make: type[Domain] = getattr(module, kind.capitalize())
    try:
        return make.from_dict(fields)
    except TypeError as error:
        raise InputError(f"domain of type '{kind}': {error}.") from None
