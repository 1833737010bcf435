"""The errors phdstream raises: one family, each also a builtin kind.

A message says what was expected, what came, and what to do. It never holds a private count.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral
from typing import Any

__all__ = [
    "BudgetError",
    "ConfigError",
    "InputError",
    "PhdstreamError",
    "SinkError",
    "StateError",
    "UnusableError",
    "check_whole",
    "did_you_mean",
    "shown",
]

_SHOWN = 60


class PhdstreamError(Exception):
    """Any error that phdstream raises on purpose."""


class InputError(PhdstreamError, ValueError):
    """Data or an argument is not of the form that was asked for."""


class UnusableError(InputError):
    """Input that can be read, but of which so little can be used that a run would spend ε on nothing."""


class BudgetError(PhdstreamError, ValueError):
    """A privacy parameter that promises nothing, or cannot be met."""


class ConfigError(PhdstreamError, ValueError):
    """A configuration file that does not say what to do."""


class StateError(PhdstreamError, RuntimeError):
    """A saved state that must not be used: damaged, in use elsewhere, or already released."""


class SinkError(PhdstreamError, OSError):
    """A sink that cannot be reached or written now. The release is out; the sink is caught up later."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint for a mistyped word.

    >>> did_you_mean("epsilom", ["epsilon", "unit"])
    "did you mean 'epsilon'?"
    >>> did_you_mean("zzz", ["epsilon", "unit"])
    'known here: epsilon, unit'
    """
    known = sorted(known)
    close = get_close_matches(word, known, n=1)
    return f"did you mean '{close[0]}'?" if close else "known here: " + ", ".join(known)


def shown(value: object) -> str:
    """Return a value as a message shows it: short, whatever it is.

    >>> shown("abc"), len(shown(10**400)), shown(10**5000)
    ("'abc'", 60, 'a number of thousands of digits')
    """
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write such numbers
        return "a number of thousands of digits"
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def check_whole(name: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Refuse anything but a whole number of at least ``least`` (and at most ``most``)."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limit = "" if most is None else f" and at most {most}"
        raise InputError(f"{name} must be a whole number of at least {least}{limit}, not {shown(value)}.")
