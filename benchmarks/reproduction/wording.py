"""Verdicts in words: holds, holds partly, does not hold; and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from benchmarks.reproduction.verdicts import Judged, Outcome

__all__ = ["evidence_text", "verdict_text"]

Expected = Sequence[tuple[Judged, Outcome]]
"""Judged comparisons, each with what the claim says of it."""
MOST = 6
"""How many settings are named before the rest is counted."""


def verdict_text(whole: Expected, parts: Expected) -> str:
    """Return whether a claim holds, what does not come out as it says, and the settings that go against it."""
    failing = [judged for judged, expects in whole if judged.outcome != expects]
    word = "holds" if not failing else "does not hold" if len(failing) == len(whole) else "holds partly"
    said = _by_outcome(failing)
    against = [judged for judged, expects in parts if _against(judged, expects) and not _named(judged, failing)]
    if against:
        said.append(f"in single settings against it: {_few([_place(judged) for judged in against])}")
    return word + (": " + "; ".join(said) if said else "")


def _by_outcome(judged: Sequence[Judged]) -> list[str]:
    """Return what comparisons come to, each outcome with its places."""
    places: dict[Outcome, list[str]] = defaultdict(list)
    for each in judged:
        places[each.outcome].append(each.comparison.where)
    return [f"{outcome} on {', '.join(names)}" for outcome, names in places.items()]


def _against(judged: Judged, expects: Outcome) -> bool:
    """Whether a setting shows a difference that the claim does not say, or the reverse of what it says."""
    return judged.outcome not in (expects, Outcome.SAME)


def _named(judged: Judged, failing: Sequence[Judged]) -> bool:
    """Whether all of its data set was named already, as coming to the same."""
    return any(each.comparison.where == judged.comparison.where and each.outcome == judged.outcome for each in failing)


def _place(judged: Judged) -> str:
    return f"{judged.comparison.where} at {judged.comparison.settings[0]} ({judged.outcome}, {judged.ratio:.2f})"


def _few(places: list[str]) -> str:
    return ", ".join(places[:MOST]) + (f" and {len(places) - MOST} more" if len(places) > MOST else "")


def evidence_text(whole: Expected, parts: Expected) -> str:
    """Return each comparison's ratio with its 95% interval, and the least and the most over its settings."""
    lines = []
    for judged, _ in whole:
        of = [part.ratio for part, _ in parts if part.comparison.where == judged.comparison.where]
        span = f", {min(of):.2f} to {max(of):.2f} over {len(of)} settings" if len(of) > 1 else ""
        lines.append(f"{judged.comparison.where}: × {judged}{span}")
    return "<br>".join(lines)
