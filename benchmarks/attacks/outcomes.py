"""How often attackers are right, day by day: trials over seeds, the bound of ε beside them, and the file of results."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.attacks.city import ARRIVES, CELLS, SQUARES, City, square_centres, square_of
from benchmarks.attacks.practices import PRACTICES, Practice
from benchmarks.reproduction.results import DOCS
from phdstream.arrays import Floats

__all__ = ["EPSILONS", "RESULTS", "Outcome", "bound", "read", "run", "write"]

RESULTS = DOCS / "results" / "attacks.csv"
EPSILONS = (0.1, 1.0, 5.0)
_COLUMNS = ["attack", "practice", "epsilon", "seed", "days", "trials", "right"]
_NO_PLACE = ("PHDStream",)
"""Practices of which only membership is attacked: the best attack on places would need a run for each."""


@dataclass(frozen=True)
class Outcome:
    """Which share of the guesses was right after so many days of publishing since the target came."""

    attack: str
    practice: str
    epsilon: float
    seed: int
    days: int
    trials: int
    right: float


def bound(attack: str, epsilon: float) -> float:
    """Return how often any attacker can be right at most, if what was published is ε-differentially private.

    Whether the target is there, both alike beforehand: ``e^ε/(1 + e^ε)``. Where it is, of m places alike beforehand:
    ``e^ε/m``, for everything published is at most e^ε times as likely with the target in a place as without it.

    >>> bound("membership", 0.0), bound("reconstruction", 0.0)
    (0.5, 0.015625)
    """
    if attack == "membership":
        return 1 / (1 + math.exp(-epsilon))
    return min(1.0, math.exp(epsilon) / SQUARES**2)


def run(
    seeds: Iterable[int], membership: int, reconstruction: int, progress: Callable[[str], object] = lambda line: None
) -> list[Outcome]:
    """Return the outcomes of both attacks on every practice: so many trials for each seed."""
    found = []
    for seed in seeds:
        for epsilon in EPSILONS:
            for name, practice in PRACTICES.items():
                found += _outcomes("membership", name, epsilon, seed, _is_there(practice, epsilon, seed, membership))
                if name not in _NO_PLACE:
                    right = _where(practice, epsilon, seed, reconstruction)
                    found += _outcomes("reconstruction", name, epsilon, seed, right)
            progress(f"seed {seed}, epsilon {epsilon}")
    return found


def _outcomes(attack: str, practice: str, epsilon: float, seed: int, right: Floats) -> list[Outcome]:
    share = right.mean(axis=0)
    return [Outcome(attack, practice, epsilon, seed, d + 1, len(right), float(share[d])) for d in range(share.size)]


def _is_there(practice: Practice, epsilon: float, seed: int, trials: int) -> Floats:
    """Return, for each trial and day, whether "there" or "not there" was guessed rightly; half if it was a toss.

    Each trial is made both ways, with the target and without, from one seed of noise, and is the mean of both.
    """
    right = []
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        city, noise = City.invented(rng, anywhere=False), int(rng.integers(1 << 30))
        ratios = [(practice(city, epsilon, there, noise)[ARRIVES:, 0], there) for there in (True, False)]
        both = [np.where(ratio == 0, 0.5, (ratio > 0) == there) for ratio, there in ratios]
        right.append((both[0] + both[1]) / 2)
    return np.array(right)


def _where(practice: Practice, epsilon: float, seed: int, trials: int) -> Floats:
    """Return, for each trial and day, whether the likeliest square was the right one; a share of it if several are."""
    right, square = [], square_of(square_centres(CELLS), SQUARES)
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial, 1])
        city = City.invented(rng, anywhere=True)
        ratio = practice(city, epsilon, True, int(rng.integers(1 << 30)))[ARRIVES:, 1:]
        ratio = np.where(ratio == np.inf, 0.0, ratio)  # an exact table that fits: others do not, or fit as well
        likelihood = np.exp(ratio - ratio.max(axis=1, keepdims=True))
        of_square = np.stack([likelihood[:, square == s].sum(axis=1) for s in range(SQUARES**2)], axis=1)
        best = of_square >= of_square.max(axis=1, keepdims=True) - 1e-9
        right.append(best[:, square_of(city.target, SQUARES)[0]] / best.sum(axis=1))
    return np.array(right)


def write(outcomes: list[Outcome], path: Path) -> None:
    """Write the results."""
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(_COLUMNS)
        table.writerows([*[*vars(each).values()][:-1], f"{each.right:.4f}"] for each in outcomes)


def read(path: Path) -> list[Outcome]:
    """Return results that were written before."""
    with path.open(newline="") as file:
        return [
            Outcome(
                row["attack"], row["practice"], float(row["epsilon"]), int(row["seed"]), int(row["days"]),
                int(row["trials"]), float(row["right"]),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip
