"""What ε means as a risk: how much surer the best attacker can become of one person, and what others have promised.

If someone believes with probability p that a person's unit is in the data (or lies in one place rather than another),
then after seeing everything ever published they believe it with at most ``p·e^ε / (1 - p + p·e^ε)``, by Bayes' rule and
the definition of ε-differential privacy, whatever else they know (Wood et al., "Differential Privacy: A Primer for a
Non-technical Audience", 2018). It is the worst case: no attack need come near it, and none can go beyond.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["DEPLOYMENTS", "Deployment", "risk_lines", "surest"]

_BELIEFS = (0.01, 0.1, 0.5)


class Deployment(NamedTuple):
    """A published use of differential privacy: who, what, ε for whom, and where that is said."""

    who: str
    epsilon: str
    protects: str
    source: str


DEPLOYMENTS = (
    Deployment("Google, symptom search trends", "1.68", "a person's day", "Bavadekar et al. 2020"),
    Deployment("Google, mobility reports", "2.64", "a person's day", "Aktay et al. 2020"),
    Deployment("Apple, emoji and health types", "2 to 4", "a person's day (on the device)", "Apple 2017"),
    Deployment("Israel, register of births", "9.98", "one birth, once", "Hod and Canetti 2024"),
    Deployment("US Census 2020, redistricting", "17.14", "a person, once (and δ = 1e-10)", "Abowd et al. 2022"),
)
"""Most promise ε anew every day; here ε is for the whole stream. Desfontaines keeps a longer list ("A list of
real-world uses of differential privacy")."""


def surest(belief: float, epsilon: float) -> float:
    """Return how sure an attacker can become at most who was this sure before.

    >>> round(surest(0.5, 1.0), 3), surest(0.5, 0.0), surest(0.5, 1000.0)
    (0.731, 0.5, 1.0)
    """
    odds = math.exp(min(epsilon, 700.0)) * belief
    return odds / (1 - belief + odds)


def risk_lines(epsilons: list[float]) -> list[str]:
    """Return a table of beliefs, before and at most after, for each ε."""
    head = "who was sure of it at " + ", ".join(f"{belief:.0%}" for belief in _BELIEFS)
    lines = [f"Risk, at worst: someone {head} becomes at most so sure, from all that is ever published:"]
    for epsilon in epsilons:
        after = "   ".join(f"{surest(belief, epsilon):>6.1%}" for belief in _BELIEFS)
        lines.append(f"  ε = {epsilon:<6g}  {after}")
    return lines
