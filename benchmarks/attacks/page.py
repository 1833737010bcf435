"""The picture and the tables of docs/privacy/attacks.md, from the results: no number is typed by hand."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.attacks.outcomes import EPSILONS, Outcome, bound
from benchmarks.attacks.practices import PRACTICES
from benchmarks.reproduction.results import DOCS, shrink
from phdstream.arrays import Floats

__all__ = ["FIGURE", "PAGE", "draw", "tables", "write_tables"]

PAGE = DOCS / "privacy" / "attacks.md"
FIGURE = DOCS / "figures" / "attacks.png"
_BEGIN, _END = "<!-- {} -->", "<!-- end of {} -->"
_LOOKS = {
    "TrackingStream": ("#0b6e4f", "-"),
    "PHDStream": ("#2a9d8f", "--"),
    "histogram anew each day": ("#c1121f", "-"),
    "counts, small ones hidden": ("#e08e0b", "-"),
    "the same, with a total": ("#7a4a00", "--"),
}
_TITLES = {
    "membership": "Is the person there?",
    "reconstruction": "Which of 64 squares?",
}
_GUESS = {"membership": 0.5, "reconstruction": 1 / 64}


def _by_day(outcomes: Sequence[Outcome], attack: str, practice: str, epsilon: float) -> Floats:
    """Return the share of right guesses: a row for each seed, a column for each day."""
    of = [each for each in outcomes if (each.attack, each.practice, each.epsilon) == (attack, practice, epsilon)]
    rows = {seed: [each.right for each in sorted(of, key=lambda e: e.days) if each.seed == seed] for seed in _seeds(of)}
    return np.array(list(rows.values()))


def _seeds(outcomes: Sequence[Outcome]) -> list[int]:
    return sorted({each.seed for each in outcomes})


def tables(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return a table for each attack: right guesses after all days, over seeds, and the bound."""
    made = {}
    for attack, guess in _GUESS.items():
        lines = [
            "| what is published | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |",
            "|---" * 4 + "|",
        ]
        for practice in PRACTICES:
            shares = [_by_day(outcomes, attack, practice, epsilon) for epsilon in EPSILONS]
            if shares[0].size:
                lines.append(f"| {practice} | " + " | ".join(map(_cell, shares)) + " |")
        bounds = " | ".join(f"{bound(attack, epsilon):.1%}" for epsilon in EPSILONS)
        lines += [f"| *most that ε over the stream allows* | {bounds} |", f"| *guessing* |{f' {guess:.1%} |' * 3}"]
        of = [each for each in outcomes if each.attack == attack]
        seeds, trials = len(_seeds(of)), of[0].trials
        lines += [
            "",
            f"Means of {seeds} seeds with {trials} trials each; in brackets the least and the most of a seed.",
        ]
        made[attack] = "\n".join(lines)
    return made


def _cell(shares: Floats) -> str:
    last = shares[:, -1]
    return f"{last.mean():.1%} ({last.min():.0%} to {last.max():.0%})"


def write_tables(outcomes: Sequence[Outcome], page: Path = PAGE) -> None:
    """Put the tables into the page, between their marks."""
    text = page.read_text(encoding="utf-8")
    for attack, table in tables(outcomes).items():
        begin, end = _BEGIN.format(attack), _END.format(attack)
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"
    page.write_text(text, encoding="utf-8")


def draw(outcomes: Sequence[Outcome], path: Path = FIGURE) -> None:
    """Draw how often the attackers are right, day by day: a row for each attack, a column for each ε."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.6), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey="row")
    for row, attack in zip(axes, _TITLES, strict=True):
        for ax, epsilon in zip(row, EPSILONS, strict=True):
            _panel(ax, outcomes, attack, epsilon)
        row[0].set_ylabel(f"{_TITLES[attack]}\nright guesses")
    for ax, epsilon in zip(axes[0], EPSILONS, strict=True):
        ax.set_title(f"ε = {epsilon:g}")
    for ax in axes[1]:
        ax.set_xlabel("days of publishing since the person came")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / path.name
        figure.savefig(drawn, dpi=160)
        shrink(drawn, path)


def _panel(ax: object, outcomes: Sequence[Outcome], attack: str, epsilon: float) -> None:
    from matplotlib.axes import Axes
    from matplotlib.ticker import PercentFormatter

    assert isinstance(ax, Axes)
    ax.axhline(_GUESS[attack], color="#888888", linewidth=0.8, linestyle=":", label="guessing")
    ax.axhline(bound(attack, epsilon), color="black", linewidth=1.2, linestyle=":", label="most that ε allows")
    for practice, (colour, style) in _LOOKS.items():
        shares = _by_day(outcomes, attack, practice, epsilon)
        if shares.size:
            days = 1 + np.arange(shares.shape[1])
            ax.fill_between(days, shares.min(axis=0), shares.max(axis=0), color=colour, alpha=0.13, linewidth=0)
            name = practice if "Stream" not in practice else f"{practice}, ε for the whole stream"
            ax.plot(days, shares.mean(axis=0), color=colour, linestyle=style, label=name)
    ax.set_ylim(-0.02 if attack == "reconstruction" else 0.4, 1.03)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.spines[["top", "right"]].set_visible(False)
