"""What surprise changes: points that come or go elsewhere than expected are looked for sooner and wider. All public.

The surprise of a block (`choosing.surprise`) is 0 if its events lie where points are, and about 1 if
they lie elsewhere. Up to `_NO_SURPRISE` it is chance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phdstream.streams.tracking.emptiness import Emptiness
from phdstream.streams.tracking.filtering import Tuning

__all__ = ["elsewhere", "enough", "tuning"]

_NO_SURPRISE, _HURRY, _LEAST = 0.2, 3.0, 0.04
_ELSEWHERE, _MORE, _MOST = {1: 0.07, -1: 0.02}, {1: 0.3, -1: 0.0}, 0.5
_DRIFT, _EMPTINESS = 0.05, 0.2


def enough(patience: float, surprise: float) -> float:
    """Return how much must have happened, relative to all points, for a block to be counted.

    >>> enough(0.3, surprise=0.1), round(enough(0.3, surprise=0.6), 3)
    (0.3, 0.136)
    """
    return max(patience / (1 + _HURRY * _beyond_chance(surprise)), _LEAST)


def elsewhere(sign: int, surprise: float) -> float:
    """Return how much of what comes (+1), or goes (-1), to expect anywhere rather than where points are."""
    return min(_ELSEWHERE[sign] + _MORE[sign] * _beyond_chance(surprise), _MOST)


def tuning(sign: int, surprise: float, emptiness: Emptiness) -> Tuning:
    """Return how to learn from a block: the more it surprises, the less the past is trusted."""
    beyond = _beyond_chance(surprise)
    calm = max(0.0, 1 - 2 * beyond)
    drift = float(np.hypot(_DRIFT, beyond))
    return Tuning(drift, 1.0 if sign > 0 else calm, replace(emptiness, strength=_EMPTINESS * calm))


def _beyond_chance(surprise: float) -> float:
    return max(surprise - _NO_SURPRISE, 0.0)
