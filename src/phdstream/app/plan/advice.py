"""A plan, tried out, in words and tables: what ε means, what the map is worth, which ε is needed, what to trade."""

from __future__ import annotations

from collections.abc import Callable

from phdstream.app.plan.rehearsal import Rehearsal, rehearse
from phdstream.app.plan.risk import DEPLOYMENTS, risk_lines
from phdstream.app.plan.stream_plan import StreamPlan, alternatives, ladder

__all__ = ["explain_rehearsal", "needed"]


def explain_rehearsal(plan: StreamPlan, progress: Callable[[int, int | None], None] = lambda done, total: None) -> str:
    """Return a plan in words: risk, accuracy at several ε, which ε is needed, and what it could be traded for."""
    rungs, others = ladder(plan), dict(list(alternatives(plan).items())[3:])
    found: list[Rehearsal] = []
    for tried in [*rungs, *others.values()]:
        progress(len(found), len(rungs) + len(others))
        found.append(rehearse(tried))
    by_epsilon = dict(zip([rung.epsilon for rung in rungs], found, strict=False))
    traded = dict(zip(others, found[len(rungs) :], strict=True))
    return "\n".join([*_promise(plan), "", *_table(plan, by_epsilon, traded), "", needed(plan, by_epsilon), *_CLOSING])


def _promise(plan: StreamPlan) -> list[str]:
    width = max(len(each.who) for each in DEPLOYMENTS)
    return [
        f"{plan.epsilon:g}-differential privacy for {plan.unit.guarantee}, by tracking (the default method).",
        f"{plan.events_per_tick:,} events a tick for {plan.ticks:,} ticks: {plan.present:,} points at the end.",
        "",
        *risk_lines([plan.epsilon / 5, plan.epsilon, plan.epsilon * 5]),
        "Others have promised, most of them anew each day (here ε is for the whole stream):",
        *(f"  {each.who:{width}}  ε = {each.epsilon:<7} for {each.protects}" for each in DEPLOYMENTS),
    ]


def _table(plan: StreamPlan, by_epsilon: dict[float, Rehearsal], traded: dict[str, Rehearsal]) -> list[str]:
    """Return what the map is worth, a line for each ε and for each trade."""
    rows = {f"ε = {epsilon:g}": each for epsilon, each in by_epsilon.items()} | traded
    width = max(map(len, rows))
    lines = [
        f"{'':{width}}   error of   error of   {f'areas of {plan.area:.2%}':>15}   smallest area",
        f"{'':{width}}   the total  the map    {'are off by':>15}   good to {plan.target:.0%}",
    ]
    for name, each in rows.items():
        share = "none" if each.smallest_share >= 1 else f"{each.smallest_share:.3%}"
        chosen = "<" if name == f"ε = {plan.epsilon:g}" else " "
        lines.append(
            f"{name:{width}} {chosen} {each.total_error:8.2%}   {each.map_error:8.2f}   {each.area_error:15.0%}   "
            f"{share:>10}   {each.verdict}".rstrip()
        )
    alone = next(iter(by_epsilon.values())).total_alone
    scale = f"publishing nothing scores 1, the exact total spread evenly {alone:.2f}; 0 is perfect."
    return [*lines, f"Error of the map (all squares of that area together): {scale}"]


def needed(plan: StreamPlan, by_epsilon: dict[float, Rehearsal]) -> str:
    """Say which ε gives counts of the plan's area that are good to its target, or that none does."""
    wanted = f"counts of areas of {plan.area:.2%} of the domain that are good to {plan.target:.0%}"
    enough = [epsilon for epsilon, each in sorted(by_epsilon.items()) if each.area_error <= plan.target]
    if enough:
        return f"For {wanted} (half of those around points) take ε = {enough[0]:g} or more."
    useless = [epsilon for epsilon, each in by_epsilon.items() if each.verdict]
    if len(useless) == len(by_epsilon):
        return f"No ε up to {max(by_epsilon):g} gives a usable map: publish the total alone, or longer ticks."
    return f"No ε up to {max(by_epsilon):g} gives {wanted}: ask for larger areas (--area), or take longer ticks."


_CLOSING = (
    "",
    "Tried out on an invented city; no data was looked at. Yours will differ: docs/choosing.md compares this with real",
    "cities. (--method phdstream: the paper's method, by arithmetic.)",
)
