"""Noise for tests: the interface of `phdstream.privacy.Noise` with noise that is recorded, forced or frozen."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Ints
from phdstream.audit.forcing import KnownNoise, log_pmf

__all__ = [
    "Draw",
    "FrozenNoise",
    "ImpulseNoise",
    "KnownNoise",
    "LossMeter",
    "RecordingNoise",
    "ScriptedNoise",
    "log_pmf",
    "pmf",
]


def pmf(k: Ints, scale: float) -> NDArray[np.float64]:
    """Return ``P(Z = k)`` for each k."""
    return math.tanh(1 / (2 * scale)) * np.exp(-np.abs(k) / scale)


@dataclass(frozen=True)
class Draw:
    """One call of `RecordingNoise.add`."""

    values: Ints
    scale: float
    at: Ints


class RecordingNoise(KnownNoise):
    """Adds nothing, and keeps what it was asked: the private values, the scale, what they are about."""

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[Draw] = []

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return the values as they are and record the call."""
        self.draws.append(Draw(np.array(values), scale, np.array(at)))
        return np.array(values)


class LossMeter(KnownNoise):
    """Adds nothing, and adds up ``|value|/scale`` for each label: the privacy loss of an input against all zeros."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.loss = np.zeros(labels)

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return the values as they are and charge each to its label."""
        np.add.at(self.loss, at, np.abs(values) / scale)
        return np.array(values)


class ImpulseNoise(KnownNoise):
    """Adds 1 to the i-th draw of label i (from 0) and nothing else; records the scale of each label's i-th draw.

    Counters are linear, so counter i then outputs the coefficient of the i-th noise term.
    """

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.drawn = np.zeros(labels, dtype=np.int64)
        self.scale = np.zeros(labels)

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return the values, plus 1 where it is this label's turn."""
        turn = self.drawn[at] == at
        self.scale[at[turn]] = scale
        self.drawn[at] += 1
        return values + turn


class ScriptedNoise(KnownNoise):
    """Returns the outputs it was given, whatever the values, and adds up the log-probability of that happening."""

    def __init__(self, outputs: Iterable[int]) -> None:
        super().__init__()
        self._outputs = iter(outputs)
        self.log_probability = 0.0

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return the next outputs of the script."""
        outputs = np.array([next(self._outputs) for _ in values], dtype=np.int64)
        self.log_probability += sum(log_pmf(k, scale) for k in (outputs - values).tolist())
        return outputs


class FrozenNoise(KnownNoise):
    """Discrete Laplace noise fixed by the seed, the scale, the label and how many-th draw of these two it is.

    The same node gets the same noise in different runs, whatever else is drawn, and in whatever order.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self._drawn: Counter[tuple[float, int]] = Counter()

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        """Return the values plus the frozen noise of their labels."""
        noise = [self._draw(float(scale), label) for label in np.asarray(at).tolist()]
        return values + np.array(noise, dtype=np.int64)

    def _draw(self, scale: float, label: int) -> int:
        self._drawn[scale, label] += 1
        first, second = self._uniforms("noise", scale.hex(), label, self._drawn[scale, label])
        return math.floor(-scale * math.log(first)) - math.floor(-scale * math.log(second))

    def _uniforms(self, *name: object) -> tuple[float, float]:
        """Return two numbers in (0, 1) that belong to the seed and the name."""
        digest = hashlib.blake2b(repr((self.seed, *name)).encode(), digest_size=16).digest()
        words = (int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big"))
        return ((words[0] >> 12) + 0.5) * 2.0**-52, ((words[1] >> 12) + 0.5) * 2.0**-52

    def key(self) -> int:
        """Return a number that belongs to the seed and to how many keys were asked for."""
        return int(self._uniforms("key", super().key())[0] * 2**62)

    def to_dict(self) -> dict[str, Any]:
        """Name the seed."""
        return {"type": "FrozenNoise", "seed": self.seed}
