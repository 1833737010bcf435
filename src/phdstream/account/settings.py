"""What a configuration says about its account: the section ``[account]``. Public but for the path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phdstream.errors import ConfigError, shown
from phdstream.streams.guarantee import exactly

__all__ = ["KNOWN", "AccountSettings", "read_account"]

KNOWN = {"folder", "population", "epsilon"}
"""The keys of the section, all required."""
_LONGEST = 200
_LARGEST = 1e4


@dataclass(frozen=True)
class AccountSettings:
    """Which account a stream draws on.

    - ``folder``: of the account, shared by all streams of its population, also those of other processes;
    - ``population``: whom it is about, in words; must agree with the account's;
    - ``epsilon``: the whole budget, as exact text; fixed when the account is opened.
    """

    folder: Path
    population: str
    epsilon: str


def read_account(given: Mapping[str, Any], base: Path, apart: Mapping[str, Path]) -> AccountSettings:
    """Return the section, checked; the path is relative to ``base``, and may not overlap the folders in ``apart``.

    >>> read_account({"folder": "a", "population": "residents", "epsilon": 3.0}, Path("x"), {}).epsilon
    '3'
    """
    if missing := sorted(KNOWN - set(given)):
        raise ConfigError(f"[account] needs '{missing[0]}'.")
    folder = given["folder"]
    if not isinstance(folder, str) or not folder or "\0" in folder:
        raise ConfigError("[account] folder must be a path.")
    path = base / Path(folder).expanduser()
    for name, other in apart.items():
        if _overlap(path, other):
            raise ConfigError(
                f"[account] folder must lie outside {name}, and {name} outside it: an account is shared by streams and "
                "outlives each of them."
            )
    return AccountSettings(path, _population(given["population"]), _epsilon(given["epsilon"]))


def _overlap(one: Path, other: Path) -> bool:
    try:
        one, other = one.resolve(), other.resolve()
    except (OSError, RuntimeError):  # a link that leads to itself
        raise ConfigError("[account] folder must be the path of a folder; it leads nowhere.") from None
    return one == other or one in other.parents or other in one.parents


def _population(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST or not value.isprintable():
        raise ConfigError(f"[account] population must say in 1 to {_LONGEST} characters whom the account is about.")
    return value


def _epsilon(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LARGEST:
        raise ConfigError(
            f"[account] epsilon must be the whole budget, above 0 and at most {_LARGEST:g}, not {shown(value)}."
        )
    return exactly(value)
