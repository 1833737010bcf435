"""Draws docs/figures/epsilon.png, the picture of docs/privacy/for-everyone.md.

    python -m benchmarks.privacy_picture

Left, what a count in one square looks like with one person in the data and without, with the noise really drawn.
Right, how sure somebody can become, at most, of whether a person is in the data, who was so sure before.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.reproduction.results import DOCS, shrink

FIGURE = DOCS / "figures" / "epsilon.png"
_EPSILONS = {0.1: "#0b6e4f", 1.0: "#e08e0b", 5.0: "#c1121f"}
_TRUE = 40


def sure_at_most(before: float, epsilon: float) -> float:
    """Return how sure one can become who was so sure before, from all that is published with this ε.

    >>> [round(sure_at_most(0.5, epsilon), 2) for epsilon in (0.1, 1.0, 5.0)]
    [0.52, 0.73, 0.99]
    """
    odds = before / (1 - before) * np.exp(epsilon)
    return float(odds / (1 + odds))


def draw(path: Path = FIGURE) -> None:
    """Draw the picture."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    counts, a = np.arange(_TRUE - 7, _TRUE + 9), np.exp(-1.0)
    for true, colour, label, shift in (
        (_TRUE, "#577590", "without you", -0.2),
        (_TRUE + 1, "#f3722c", "with you", 0.2),
    ):
        chance = (1 - a) / (1 + a) * a ** np.abs(counts - true)
        left.bar(counts + shift, chance, width=0.4, color=colour, label=f"{label}: true count {true}")
    left.set_title("The count of your square (ε = 1)")
    left.set_xlabel("published count")
    left.set_ylabel("how likely")
    left.set_ylim(0, 0.6)
    left.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    left.legend(frameon=False, loc="upper right", fontsize="small")
    before = np.concatenate([np.geomspace(1e-6, 0.01, 100), np.linspace(0.01, 0.999, 400)])
    right.plot(before, before, color="#888888", linestyle=":", label="nothing published")
    for epsilon, colour in _EPSILONS.items():
        after = [sure_at_most(p, epsilon) for p in before]
        right.plot(
            before, after, color=colour, label=f"ε = {epsilon:g}: from 50% to {sure_at_most(0.5, epsilon):.0%} at most"
        )
    right.set_title("How sure can anybody become that you are in it?")
    right.set_xlabel("how sure they were before")
    right.set_ylabel("after all releases, ever, at most")
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0))
    right.legend(frameon=False, loc="lower right", fontsize="small")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / path.name
        figure.savefig(drawn, dpi=160)
        shrink(drawn, path)


if __name__ == "__main__":
    draw()
