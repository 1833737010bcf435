"""Ways to publish a city day by day, and what the best attacker makes of each: log-likelihood ratios, day by day.

All return an array (days, 1 + squares): of what was published up to a day, how much more likely it is with the target
in each place that the attacker considers than without it, in logarithms. The first column is the target's true place
(is it there at all? the attacker knows where it would be); the others are the middles of all squares (where is it?).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import phdstream as phd
from benchmarks.attacks.city import ARRIVES, DAYS, DOMAIN, SQUARES, City, square_centres, square_of
from benchmarks.attacks.transcripts import Transcript, log_likelihood
from phdstream.arrays import Floats, Ints
from phdstream.domains.prefixes import code_range
from phdstream.privacy import Budget, Simulation, calibrate_split, scale_for

__all__ = ["PRACTICES", "Practice"]

Practice = Callable[[City, float, bool, int], Floats]
_FINE, _HIDDEN = 16, 10
"""Tables have 16 times 16 squares; those below 10 are hidden, as offices do."""


def places(city: City) -> Floats:
    """Return where the attacker considers the target: its true place, then the middle of every square."""
    return np.vstack([city.target, square_centres(SQUARES)])


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
    noise, side, scale = Simulation(seed), _FINE, scale_for(epsilon)
    square, ratio = square_of(places(city), side), np.zeros((DAYS, 1 + SQUARES**2))
    for day in range(ARRIVES, DAYS):
        known = city.known(day, side)
        true = known + np.bincount(square[:1], minlength=side * side) * there
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
    square, ratio = square_of(places(city), _FINE), np.zeros((DAYS, 1 + SQUARES**2))
    for day in range(ARRIVES, DAYS):
        known = city.known(day, _FINE)
        here = np.bincount(square[:1], minlength=known.size) * there
        seen = _shown(known + here)
        for place, mine in enumerate(square):
            would = _shown(known + np.bincount([mine], minlength=known.size))
            fits, fits_without = np.array_equal(seen, would), np.array_equal(seen, _shown(known))
            if with_total:
                fits, fits_without = fits and there, fits_without and not there
            ratio[day, place] = 0.0 if fits and fits_without else np.inf if fits else -np.inf
    certain = np.maximum.accumulate(np.where(np.isinf(ratio), 1, 0), axis=0)
    return np.where(certain > 0, np.where(ratio == 0, _carried(ratio), ratio), 0.0)


def _shown(counts: Ints) -> Ints:
    """Return a table as it is published: -1 where a count is too small to show."""
    return np.where(counts < _HIDDEN, -1, counts)


def _carried(ratio: Floats) -> Floats:
    """Return the last certainty there was, for days on which nothing is told."""
    last = ratio.copy()
    for day in range(1, len(last)):
        last[day] = np.where(last[day] == 0, last[day - 1], last[day])
    return last
