"""What a release knows of its own error: whether it is expected to say more than publishing nothing would. Public.

From released counts and their variances alone, so it costs no privacy. The domain is cut into parts of about one size,
nodes of the release's tree. With σ the standard deviation of the noise in a part's count, its count is expected to be
off by sqrt(2/π)·σ. The sum of that over all parts, by the total, is the expected *weighted error*: publishing nothing
has 1, and no release that adds up has much over 2. It is an estimate, right to about a factor of 1.5 as a rule: how
points lie inside the cells is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats
from phdstream.domains import ROOT, Domain
from phdstream.release.estimate import Estimate

__all__ = ["AREAS", "Usefulness", "usefulness"]

AREAS = {"small": 0.0003, "medium": 0.003, "large": 0.03}
"""The parts of the domain that are judged, as shares of its measure: the middle of the evaluation's sizes of query."""
_NOTHING, _MOST = 1.0, 2.0


@dataclass(frozen=True)
class Usefulness:
    """What is expected of a release, by the size of the areas that are asked about.

    ``expected_error`` is the weighted error expected from noise: the sum of what counts are off, by all points.
    ``contrast`` is how far the released counts are from the total spread evenly, in the same measure: if that is
    within the expected error, they show nothing beyond the total.
    """

    expected_error: dict[str, float]
    contrast: dict[str, float]

    @property
    def worse_than_nothing(self) -> list[str]:
        """The sizes for which publishing nothing is expected to be no worse."""
        return [size for size, error in self.expected_error.items() if error >= _NOTHING]

    @property
    def no_better_than_total(self) -> list[str]:
        """The sizes for which the total alone, spread evenly, is expected to be no worse."""
        return [size for size, error in self.expected_error.items() if self.contrast[size] <= error]

    @property
    def warning(self) -> str:
        """What to know before using the release, in a sentence; empty if there is nothing to warn of."""
        nothing = self.worse_than_nothing
        total = [size for size in self.no_better_than_total if size not in nothing]
        parts = [f"no better than publishing nothing for {' and '.join(nothing)} areas"] if nothing else []
        parts += [f"no better than the total alone for {' and '.join(total)} areas"] if total else []
        if not parts:
            return ""
        each = ", ".join(f"{size} {error:.2f}" for size, error in self.expected_error.items())
        return (
            f"At this ε the release is expected to be {', and '.join(parts)}: there are too few points for the noise "
            f"(weighted error expected from noise alone: {each}; publishing nothing has 1)."
        )


def usefulness(domain: Domain, estimate: Estimate) -> Usefulness:
    """Return what is expected of an estimate.

    >>> import phdstream as phd
    >>> def release(points):
    ...     stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 0.5, phd.Event(), noise=phd.Simulation(seed=1))
    ...     return stream.update(np.random.default_rng(1).normal(0.5, 0.05, (points, 2)))
    >>> release(100_000).usefulness.warning
    ''
    >>> release(100).usefulness.worse_than_nothing
    ['small', 'medium', 'large']
    """
    if not estimate.node.size:
        return Usefulness({}, {})
    share = domain.measure(estimate.node) / domain.measure(np.array([ROOT]))[0]
    errors, contrasts = {}, {}
    for size, area in AREAS.items():
        parts = _parts(domain, estimate, share, area)
        total = max(1.0, float(estimate.count[0]))
        spread = np.sqrt(2 / np.pi * estimate.variance[parts]).sum()
        errors[size] = min(_MOST, float(spread / total))
        contrasts[size] = float(np.abs(estimate.count[parts] - estimate.count[0] * share[parts]).sum() / total)
    return Usefulness(errors, contrasts)


def _parts(domain: Domain, estimate: Estimate, share: Floats, area: float) -> Bools:
    """Return the nodes that cut the domain into parts of at most an area, and cells that are coarser than that."""
    bits = np.array([0, *domain.level_bits])[domain.levels(estimate.node)]
    parent = np.searchsorted(estimate.node, np.maximum(estimate.node >> bits, ROOT))
    fine = share <= area
    return np.asarray((fine & ~fine[parent]) | (estimate.leaf & ~fine))
