"""The errors phdstream raises: one family, each also a builtin kind.

A message says what was expected, what came, and what to do. It never holds a private count.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["BudgetError", "ConfigError", "InputError", "PhdstreamError", "StateError", "did_you_mean"]


class PhdstreamError(Exception):
    """Any error that phdstream raises on purpose."""


class InputError(PhdstreamError, ValueError):
    """Data or an argument is not of the form that was asked for."""


class BudgetError(PhdstreamError, ValueError):
    """A privacy parameter that promises nothing, or cannot be met."""


class ConfigError(PhdstreamError, ValueError):
    """A configuration file that does not say what to do."""


class StateError(PhdstreamError, RuntimeError):
    """A saved state that must not be used: damaged, in use elsewhere, or already released."""


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
