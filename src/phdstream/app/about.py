"""What only people know of a deployment: the section ``[about]``, for the card. All of it is published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from phdstream.errors import ConfigError, did_you_mean, shown

__all__ = ["ABOUT", "read_about", "registry_schema"]

ABOUT: dict[str, tuple[int, str]] = {
    "title": (1, "the name of what is published"),
    "organisation": (1, "who publishes it"),
    "organisation_type": (1, '"Government", "Industry" or "Nonprofit"'),
    "description": (1, "what it is, in short"),
    "intended_use": (1, "what it is for"),
    "region": (1, "which region the data describes, or whose law applies"),
    "authors": (1, "who wrote this entry, as a list of names"),
    "published": (1, "the date of the first release"),
    "data": (3, "which events the data holds, of whom, and how they are collected"),
    "units": (3, "about how many people, records or events there are, from a public source and never from the data"),
    "actors": (3, "who sees the data, who sees the releases, and how far each is trusted"),
    "tuning": (3, "whether anybody looked at the data before, and how ε and the other settings were chosen"),
    "justification": (3, "why it was done so"),
    "sector": (0, '"Technology", "Healthcare", "Education", "Government", "Energy" or "Finance"'),
    "contact": (0, "whom to ask"),
    "url": (0, "where the releases, or a page about them, are found"),
}
"""Each key, the tier of the registry that it is needed for (0: none), and what it says."""
_CHOICES = {"organisation_type": "data_curator_type", "sector": "data_product_sector"}


@cache
def registry_schema() -> dict[str, Any]:
    """Return what an entry of OpenDP's registry of deployments must look like, as a JSON Schema."""
    found: dict[str, Any] = json.loads(files("phdstream.app").joinpath("registry_schema.json").read_text("utf-8"))
    return found


def read_about(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section, checked; everything in it may be left out.

    >>> read_about({"title": "Where people are", "published": date(2027, 1, 2)})
    {'title': 'Where people are', 'published': '2027-01-02'}
    """
    return {key: _value(key, value) for key, value in given.items()}


def _value(key: str, value: Any) -> Any:
    if key == "units":
        if type(value) is not int or value < 1:
            raise ConfigError(f"[about] units must be a whole number, {ABOUT[key][1]}; not {shown(value)}.")
        return value
    if key == "authors":
        if not isinstance(value, list) or not value or not all(_is_text(one) for one in value):
            raise ConfigError("[about] authors must be a list of names.")
        return list(value)
    if key == "published":
        return _date(value)
    if not _is_text(value):
        raise ConfigError(f"[about] {key} must say, as text, {ABOUT[key][1]}.")
    if key in _CHOICES and value not in _choices(_CHOICES[key]):
        raise ConfigError(f"[about] {key} has no {value!r}: {did_you_mean(value, _choices(_CHOICES[key]))}")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _date(value: Any) -> str:
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        day = None
    if not isinstance(day, date) or isinstance(day, datetime):
        raise ConfigError(f"[about] published must be a date such as 2027-01-31, not {shown(value)}.")
    return day.isoformat()


def _choices(field: str) -> list[str]:
    """Return what the registry lets a field be."""
    basic = registry_schema()["properties"]["deployment"]["properties"]["basic"]["properties"]
    named = basic | basic["data_curators"]["items"]["properties"]
    return list(named[field]["enum"])
