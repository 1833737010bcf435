"""The floors: publishing nothing, and publishing the noisy total alone. What does not beat them is worth nothing.

On small queries most true counts are near 0, so that by a relative error *no* points can do better than noisy ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phdstream.domains import Domain
from phdstream.privacy import Budget, Event, Noise
from phdstream.release import Release
from phdstream.release.estimate import Estimate
from phdstream.release.soundness import total_alone
from phdstream.streams.guarantee import SIMULATED
from phdstream.streams.intake import Intake
from phdstream.streams.paper.counters import Simple
from phdstream.streams.setting import checked_noise
from phdstream.version import __version__

__all__ = ["Nothing", "UniformTotal"]


class _Floor:
    """Releases one cell, the whole domain."""

    method: str

    def __init__(self, domain: Domain, epsilon: float, *, noise: Noise | None = None) -> None:
        self.domain, self.epsilon, self.noise = domain, epsilon, checked_noise(noise)
        self.tick, self._key, self._summary = 0, self.noise.key(), domain.summary()
        self._before = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def _release(self, estimate: Estimate, claim: str) -> Release:
        self.tick += 1
        metadata = {"product": "phdstream", "version": __version__, "privacy": claim, "epsilon": self.epsilon}
        metadata |= {"unit": Event().to_dict(), "domain": self._summary, "method": self.method, "window": None}
        release = Release(self.domain, self.tick, estimate, self._key, metadata, *self._before)
        self._before = release.leaves, release.points
        return release


class Nothing(_Floor):
    """The null baseline: no points, at any tick. It looks at no event, so its privacy loss is 0.

    >>> import phdstream as phd
    >>> Nothing(phd.Box([(0, 1), (0, 1)]), epsilon=1.0).update([(0.5, 0.5)] * 100).total
    0.0
    """

    method = "nothing"

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Look at nothing and release nothing."""
        return self._release(total_alone(0.0, 0.0, self._key), "private: it looks at no data")


class UniformTotal(_Floor):
    """The uniform baseline: the noisy number of points, spread over the domain by its measure.

    **Privacy.** The total is the running sum of one Simple counter of budget ε (`phdstream.streams.paper.counters`): at
    each tick the number of its inserts less that of its deletes, plus fresh discrete Laplace noise of scale 1/ε, is
    added. An event belongs to one tick and changes that number by 1, so it is in one noisy sum, of scale 1/ε: one
    Laplace mechanism, ε-differentially private for each event over the whole stream. Where the points lie depends on
    the noisy total, the public domain and a key, which is post-processing.

    >>> import phdstream as phd
    >>> uniform = UniformTotal(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, noise=phd.Simulation(seed=1))
    >>> release = uniform.update([(0.9, 0.9)] * 1000)
    >>> release.leaves.size, round(float(release.count([[0, 0, 0.5, 0.5]]).value[0]), -1)
    (1, 250.0)
    """

    method = "uniform"

    def __init__(self, domain: Domain, epsilon: float, *, noise: Noise | None = None) -> None:
        super().__init__(domain, epsilon, noise=noise)
        self._intake = Intake(domain, Event(), True, Budget.per_event(epsilon, Event()))
        self._counter = Simple(epsilon)
        self._state = self._counter.start(1)

    def update(self, inserts: Any = None, deletes: Any = None) -> Release:
        """Take one tick's events, count them, and release the total."""
        come, gone = self._intake.codes(inserts, deletes)
        change, root = np.array([come.size - gone.size]), np.ones(1, np.int64)
        self._state, total = self._counter.step(self._state, change, self.noise, root)
        steps = self._counter.steps(self._state)
        variance = float(self._counter.variance(np.zeros_like(steps), steps)[0])
        return self._release(total_alone(float(total[0]), variance, self._key), self._claim)

    @property
    def _claim(self) -> str:
        if not self.noise.private:
            return SIMULATED
        return f"{self.epsilon:g}-differentially private for {Event().guarantee}, over the whole stream"
