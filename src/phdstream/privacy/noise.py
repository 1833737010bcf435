"""The only source of noise: exact discrete Laplace, or a seeded imitation for experiments.

Discrete Laplace of scale s is the distribution on the integers with

    P(Z = k) = (1 - a)/(1 + a) · a^|k|,    a = exp(-1/s).

Adding it to an integer vector whose l1 distance between neighbours is at most 1 is (1/s)-differentially
private. Floating-point Laplace noise is attackable (Mironov 2012; Haney et al. 2022) and is not used anywhere.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.errors import BudgetError, InputError, StateError, shown
from phdstream.privacy.laplace import discrete_laplace

__all__ = ["ExactNoise", "Noise", "Simulation", "noise_from_dict", "noise_variance", "scale_for"]


class Noise(Protocol):
    """Adds discrete Laplace noise to private integers."""

    @property
    def private(self) -> bool:
        """Whether releases made with this noise are differentially private."""
        ...

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return ``values`` plus independent noise of the given scale.

        ``at`` names what each value is about (the node, the counter). The noise does not depend on it;
        audits and tests that freeze or force noise do.
        """
        ...

    def key(self) -> int:
        """Return a fresh 62-bit number for public choices, such as where synthetic points fall."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return what is needed to go on after a restart."""
        ...


class ExactNoise:
    """Exact discrete Laplace noise from the operating system's randomness.

    Sampled by `phdstream.privacy.laplace`, which proves that it is exact; OpenDP's sampler, which is hundreds of times
    slower, is the oracle of its tests. Values must be below 2^62 in size, as any count is.
    """

    private = True

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return ``values`` plus exact noise; see `Noise.add`."""
        return values + discrete_laplace(scale, values.size)

    def key(self) -> int:
        """Return 62 bits from the operating system."""
        return int.from_bytes(os.urandom(8), "little") >> 2

    def to_dict(self) -> dict[str, Any]:
        """Exact noise has no state: a restart draws fresh randomness for ticks not yet released."""
        return {"type": "exact"}

    def __repr__(self) -> str:
        return "ExactNoise()"


class Simulation:
    """Seeded noise for experiments: repeatable, fast, and **not private**.

    Everything released with it says "simulated, not private". The same seed gives the same run.

    >>> zeros = np.zeros(4, dtype=np.int64)
    >>> first, again = Simulation(seed=7), Simulation(seed=7)
    >>> bool((first.add(zeros, 2.0, zeros) == again.add(zeros, 2.0, zeros)).all())
    True
    """

    private = False

    def __init__(self, seed: int) -> None:
        if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
            raise InputError(f"Simulation(seed=...) takes a whole number of at least 0, not {shown(seed)}.")
        self._generator = np.random.Generator(np.random.PCG64(int(seed)))

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return ``values`` plus the difference of two geometric variables, which is discrete Laplace."""
        success = -math.expm1(-1 / scale)
        draws: Ints = self._generator.geometric(success, size=(2, values.size))
        noisy: Ints = values + (draws[0] - draws[1])
        return noisy

    def key(self) -> int:
        """Return 62 seeded bits."""
        return int(self._generator.integers(1 << 62))

    def to_dict(self) -> dict[str, Any]:
        """The generator's position, so that a loaded run goes on as the original would."""
        state = self._generator.bit_generator.state["state"]
        return {"type": "simulation", "state": str(state["state"]), "inc": str(state["inc"])}

    def _resume(self, state: int, inc: int) -> None:
        position = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": inc},
            "has_uint32": 0,
            "uinteger": 0,
        }
        self._generator.bit_generator.state = position

    def __repr__(self) -> str:
        return "Simulation(...)  # not private"


def noise_from_dict(spec: dict[str, Any]) -> Noise:
    """Return the noise source that `Noise.to_dict` described."""
    if spec["type"] == "exact":
        return ExactNoise()
    if spec["type"] != "simulation":
        raise StateError(f"unknown kind of noise {spec['type']!r} in a saved state.")
    noise = Simulation(seed=0)
    noise._resume(int(spec["state"]), int(spec["inc"]))
    return noise


@lru_cache(maxsize=1024, typed=True)
def scale_for(epsilon: float, sums: int = 1) -> float:
    """Return the least float that is at least ``sums / epsilon``: the scale when one item is in that many sums.

    The division is checked in exact arithmetic and rounded toward privacy.

    >>> scale_for(0.5), scale_for(0.1) >= 10, scale_for(1.0, sums=3)
    (2.0, True, 3.0)
    """
    number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
    if not number or not 0 < epsilon < math.inf or math.isinf(scale := sums / epsilon):
        raise BudgetError(f"epsilon must be a positive, finite number (and not next to 0), not {shown(epsilon)}.")
    while Fraction(scale) * Fraction(epsilon) < sums:
        scale = math.nextafter(scale, math.inf)
    return scale


def noise_variance(scale: float | Floats) -> Any:
    """Return the variance of discrete Laplace noise, ``2a/(1-a)²`` with ``a = exp(-1/scale)``.

    >>> round(float(noise_variance(10.0)), 2)
    199.83
    """
    rate = 1 / np.asarray(scale, dtype=np.float64)
    return 2 * np.exp(-rate) / np.expm1(-rate) ** 2
