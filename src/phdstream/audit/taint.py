"""Taint: private buffers can be read inside a noise call only, so that no decision can look at them.

While a stream takes its ticks, two things hold. Whatever a `PrivateCodes` holds raises on any access from outside its
own methods, and exact counts are given to a mechanism only. And these exact counts are poisoned: they can be added to
and taken from each other, and raised to a floor, but not compared, indexed, printed, converted or asked for their
size; only noise, and a bank of counters, which is noise too, unwrap them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from phdstream.audit.cases import Make, configured_case, random_case
from phdstream.audit.finding import Effort, Finding, Progress, Violation
from phdstream.errors import PhdstreamError
from phdstream.privacy import DivisibleNoise, ExactNoise, Simulation
from phdstream.streams.paper.counters import CounterBank
from phdstream.streams.private_codes import PrivateCodes

__all__ = ["Poisoned", "TaintCheck", "Unwrapping", "poisoned_buffers"]

_OWN = PrivateCodes.__module__
_MECHANISMS = ("phdstream.streams.tracking.mechanism.mechanism", "phdstream.streams.paper.mechanism")
_SAVING = ("phdstream.streams.private_codes", *_MECHANISMS)
_BUFFERS = ("_codes", "_held", "_waiting", "_finest", "_exact")
_ALLOWED = (np.add, np.subtract, np.maximum, np.negative)


class Poisoned(np.lib.mixins.NDArrayOperatorsMixin):
    """Exact counts, or what was computed of them: no decision can be taken by one.

    >>> counts = Poisoned(np.array([3, 4]))
    >>> noisy = (counts + 1) - np.array([0, 1])
    >>> bool(counts[0] > 2)
    Traceback (most recent call last):
    phdstream.audit.finding.Violation: private counts were looked at outside a noise call (__getitem__)
    """

    __slots__ = ("_private",)

    def __init__(self, private: Any) -> None:
        object.__setattr__(self, "_private", private)

    def __getattribute__(self, name: str) -> Any:
        if name in ("__array_ufunc__", "__class__") or name.startswith(("__r", "__add", "__sub", "__i", "__neg")):
            return object.__getattribute__(self, name)
        raise Violation(f"private counts were looked at outside a noise call ({name})")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        """Add, subtract, raise to a floor; nothing else."""
        if method != "__call__" or ufunc not in _ALLOWED or more:
            raise Violation(f"private counts were looked at outside a noise call ({ufunc.__name__})")
        return Poisoned(ufunc(*map(unwrapped, inputs)))


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Poisoned, *_: Any) -> Any:
        raise Violation(f"private counts were looked at outside a noise call ({name})")

    return refuse


for _name in (
    "__getitem__",
    "__bool__",
    "__int__",
    "__float__",
    "__index__",
    "__len__",
    "__iter__",
    "__repr__",
    "__str__",
):
    setattr(Poisoned, _name, _refusing(_name))


def unwrapped(value: Any) -> Any:
    """Return what is inside, for noise to be added to it."""
    return object.__getattribute__(value, "_private") if isinstance(value, Poisoned) else value


class TaintCheck:
    """Random streams, or a configured one, take their ticks while everything private in them is poisoned."""

    name = "taint"
    shows = "Private buffers and exact counts can be read inside a noise call only: no decision looks at them."

    def __init__(self, make: Make | None = None) -> None:
        self._make = make

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Try random cases."""
        finding = Finding(self.name, self.shows)
        if self._make is not None:
            finding.notes.append("on the configured stream and on random ones")
        with poisoned_buffers():
            for seed in effort.seeds(finding, 20.0, 400, progress):
                configured = self._make is not None and seed % 4 == 0
                case = configured_case(self._make, seed) if configured and self._make else random_case(seed)
                try:
                    stream = case.make()
                    stream.noise = Unwrapping(ExactNoise())
                    for tick in case.more:
                        tick.update(stream)
                        finding.samples += 1
                except Violation as error:
                    finding.violated(f"case {seed}, {case.name}: {error}")
                except PhdstreamError as error:
                    finding.violated(
                        f"case {seed}, {case.name}: refused by the product itself ({type(error).__name__})"
                    )
        return finding


@contextmanager
def poisoned_buffers() -> Iterator[None]:
    """Poison what is private of every stream that takes ticks in this block, with `Unwrapping` noise."""
    spend = PrivateCodes.spend

    def guarded(self: PrivateCodes, epsilon: float) -> Any:
        if _caller() not in _MECHANISMS:
            raise Violation(f"exact counts were asked for outside a mechanism ({_caller()})")
        return _PoisonedCounts(spend(self, epsilon))

    def reading(self: PrivateCodes, name: str) -> Any:
        if name in _BUFFERS and _caller() != _OWN:
            raise Violation(f"a private buffer was read by {_caller()}")
        if name == "to_arrays" and _caller() not in _SAVING:
            raise Violation(f"private events were written out by {_caller()}")
        return object.__getattribute__(self, name)

    step = CounterBank.step

    def stepped(self: CounterBank, rows: Any, values: Any, noise: Any, at: Any) -> Any:
        return step(self, rows, unwrapped(values), noise, at)

    with ExitStack() as patches:
        patches.enter_context(patch.object(PrivateCodes, "spend", guarded))
        patches.enter_context(patch.object(PrivateCodes, "__getattribute__", reading, create=True))
        patches.enter_context(patch.object(CounterBank, "step", stepped))
        yield


def _caller() -> str:
    """Return the module of whoever called what asks."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name in ("<genexpr>", "<listcomp>", "<dictcomp>"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


class _PoisonedCounts:
    def __init__(self, counts: Any) -> None:
        self._counts = counts

    def within(self, nodes: Any, bits: int | None = None) -> Poisoned:
        return Poisoned(self._counts.within(nodes, bits))


class Unwrapping:
    """Noise that takes poisoned counts: the only place where they become numbers again, with noise on them."""

    private = True

    def __init__(self, noise: ExactNoise | Simulation) -> None:
        self._noise = noise

    def add(self, values: Any, scale: float, at: Any) -> Any:
        """Return noisy values of poisoned ones."""
        return self._noise.add(unwrapped(values), scale, at=at)

    def divisible(self, scale: float, parts: Any, at: Any) -> DivisibleNoise:
        """Return divisible noise that takes poisoned values."""
        return _UnwrappingParts(self._noise.divisible(scale, parts, at=at))

    def key(self) -> int:
        """Return the source's key."""
        return self._noise.key()

    def to_dict(self) -> dict[str, Any]:
        """Return what the source says of itself."""
        return self._noise.to_dict()


class _UnwrappingParts(DivisibleNoise):
    def __init__(self, noise: DivisibleNoise) -> None:
        self._noise = noise

    def add(self, values: Any, first: Any, parts: Any, at: Any) -> Any:
        return self._noise.add(unwrapped(values), first, parts, at=at)
