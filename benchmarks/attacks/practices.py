"""Ways to publish a city day by day, and what the best attacker makes of each: log-likelihood ratios, day by day.

All return an array (days, 1 + cells): of what was published up to a day, how much more likely it is with the target
in each place that the attacker considers than without it, in logarithms. The first column is the target's true place
(is it there at all? the attacker knows where it would be); the others are the finest cells that anything here tells
apart (where is it?).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import phdstream as phd
from benchmarks.attacks.city import ARRIVES, CELLS, DAYS, DOMAIN, City, square_centres, square_of
from benchmarks.attacks.transcripts import Transcript, log_likelihood
from phdstream.arrays import Floats, Ints
from phdstream.domains.prefixes import code_range
from phdstream.privacy import Budget, Simulation, calibrate_split, scale_for

__all__ = ["PRACTICES", "Practice"]

Practice = Callable[[City, float, bool, int], Floats]
_HIDDEN = 10
"""Counts below it are not shown in tables, as offices do."""


def places(city: City) -> Floats:
    """Return where the attacker considers the target: its true place, then the middle of every cell."""
    return np.vstack([city.target, square_centres(CELLS)])


def tracking(city: City, epsilon: float, there: bool, seed: int) -> Floats:
    """`TrackingStream`, the default: ε for the whole stream. The attacker sees every noisy count there is."""
    both = _played(lambda: phd.TrackingStream(DOMAIN, epsilon, phd.Event(), insert_only=True), city, there, seed)
    codes = DOMAIN.encode(places(city))[0]
    ratio = np.zeros((DAYS, codes.size))
    for present, absent in zip(*(transcript.counts for transcript in both), strict=True):
        if not np.array_equal(present.exact, absent.exact):  # the target's arrival is among what was counted here
            node = _node_of(codes, absent.at)
            without, to_scale = absent.noisy[node] - absent.exact[node], absent.scale
            ratio[absent.tick] += (np.abs(without) - np.abs(without - 1)) / to_scale
    return np.cumsum(ratio, axis=0)


def phdstream(city: City, epsilon: float, there: bool, seed: int) -> Floats:
    """`PHDStream`, the paper's method repaired: ε for the whole stream. Seen are its trees and noisy counts."""
    both = _played(lambda: phd.PHDStream(DOMAIN, epsilon, phd.Event(), insert_only=True), city, there, seed)
    rule = calibrate_split(Budget.solve(epsilon, phd.Event(), deletes=False).tree, DOMAIN.fanout)
    present, absent = (log_likelihood(each, DAYS, rule.scale, rule.threshold) for each in both)
    return np.cumsum(present - absent)[:, None]


def anew(city: City, epsilon: float, there: bool, seed: int) -> Floats:
    """A one-shot mechanism run anew each day: a histogram of all who are recorded, with noise of scale 1/ε."""
    noise, scale = Simulation(seed), scale_for(epsilon)
    square, ratio = square_of(places(city), CELLS), np.zeros((DAYS, 1 + CELLS**2))
    for day in range(ARRIVES, DAYS):
        known = city.known(day, CELLS)
        true = _with(known, square[0], there)
        above = noise.add(true, scale, true)[square] - known[square]
        ratio[day] = (np.abs(above) - np.abs(above - 1)) / scale
    return np.cumsum(ratio, axis=0)


def hidden(city: City, epsilon: float, there: bool, seed: int) -> Floats:
    """Exact counts each day, without small ones: where the table is not what it would be, it gives the answer away."""
    return _tables(city, there, with_total=False)


def hidden_with_total(city: City, epsilon: float, there: bool, seed: int) -> Floats:
    """The same with the city's exact total beside it, as such tables have."""
    return _tables(city, there, with_total=True)


PRACTICES: dict[str, Practice] = {
    "TrackingStream": tracking,
    "PHDStream": phdstream,
    "histogram anew each day": anew,
    "counts, small ones hidden": hidden,
    "the same, with a total": hidden_with_total,
}
"""By the name that pages use."""


def _played(
    make: Callable[[], phd.PHDStream | phd.TrackingStream], city: City, there: bool, seed: int
) -> list[Transcript]:
    """Return the transcripts of a stream with the target and without: the same noisy numbers, of which one is true."""
    true = Transcript.seeded(seed)
    other = true.repeated()
    for transcript, with_target in ((true, there), (other, not there)):
        stream = make()
        stream.noise = transcript
        for day in range(DAYS):
            transcript.tick = day
            stream.update(city.arrivals(day, with_target))
    return [true, other] if there else [other, true]


def _node_of(codes: Ints, nodes: Ints) -> Ints:
    """Return the position of the node that each code is in; some node has each."""
    first, past = code_range(nodes, DOMAIN.total_bits)
    order = np.argsort(first)
    at = order[np.searchsorted(first[order], codes, side="right") - 1]
    assert ((first[at] <= codes) & (codes < past[at])).all(), "the attacker considers a place that was not counted"
    return at


def _tables(city: City, there: bool, with_total: bool) -> Floats:
    """Return what exact tables tell: 0 where both worlds give the same table, and infinity where they do not."""
    square, ratio = square_of(places(city), CELLS), np.zeros((DAYS, 1 + CELLS**2))
    for day in range(ARRIVES, DAYS):
        known = city.known(day, CELLS)
        seen, without, with_one = (_shown(each) for each in (_with(known, square[0], there), known, known + 1))
        other = (seen != without).sum() - (seen != without)  # differences in other squares than each
        fits, fits_without = ((other == 0) & (seen == with_one))[square], bool((seen == without).all())
        if with_total:
            fits, fits_without = fits & there, fits_without and not there
        certain = np.where(fits, np.inf, -np.inf)
        ratio[day] = np.where(fits & fits_without, ratio[day - 1], certain)  # for days that tell nothing: as before
    return ratio


def _with(known: Ints, square: int, there: bool) -> Ints:
    counts = known.copy()
    counts[square] += there
    return counts


def _shown(counts: Ints) -> Ints:
    """Return a table as it is published: -1 where a count is too small to show."""
    return np.where(counts < _HIDDEN, -1, counts)
