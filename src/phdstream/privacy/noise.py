"""The only source of noise: exact discrete Laplace, or a seeded imitation for experiments.

Discrete Laplace of scale s is the distribution on the integers with

    P(Z = k) = (1 - a)/(1 + a) · a^|k|,    a = exp(-1/s).

Adding it to an integer vector whose l1 distance between neighbours is at most 1 is (1/s)-differentially
private. Floating-point Laplace noise is attackable (Mironov 2012; Haney et al. 2022) and is not used anywhere.
"""

from __future__ import annotations

import math
import os
from typing import Any, Protocol, runtime_checkable

import numpy as np

from phdstream.arrays import Ints
from phdstream.errors import InputError, StateError, shown
from phdstream.privacy.divisible_noise import DivisibleNoise
from phdstream.privacy.laplace import discrete_laplace

__all__ = ["ExactNoise", "Noise", "Simulation", "noise_from_dict"]


@runtime_checkable
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

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return noise that can be divided: as many independent parts of the given scale for each of the nodes ``at``.

        See `phdstream.privacy.divisible_noise`.
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

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return exact noise that can be divided; see `Noise.divisible`."""
        return DivisibleNoise(discrete_laplace(scale, int(parts.sum())))

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

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return seeded noise that can be divided; see `Noise.divisible`."""
        nothing = np.zeros(int(parts.sum()), dtype=np.int64)
        return DivisibleNoise(self.add(nothing, scale, at=nothing))

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
