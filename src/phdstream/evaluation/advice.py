"""What an experiment says about settings, in sentences: method, ε, start, length of ticks; and whether to publish."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.setting import load_setting
from phdstream.evaluation.summary import Key, Mean, common_ticks, curves, means, recommend

__all__ = ["USABLE", "advice"]

USABLE = 0.5
"""The largest weighted error of a usable map: if the total is right, a quarter of the points are in a wrong place."""
_SAME, _ENOUGH_EVENTS = 0.05, 100
_CHOICES = {
    "-block": ("Counter", "the Block counter", "the Simple counter"),
    "-4": ("Fanout", "fanout 4", "fanout 2"),
    "-4-ticks": ("Ticks", "ticks four times as long", "ticks as they are"),
}
"""What a variant of a method tries that the plain one does not: the setting, its choice, and the plain one."""
Best = dict[float, tuple[str, float, Mean]]
_UNIT = (
    "All of this is for the privacy of one event. If one person has several, ε must be shared among them: compare at a "
    "smaller ε, and see phdstream plan --unit user:INSERTS,DELETES."
)
_LOOKING = (
    "It was computed from true data, and a choice made by looking at it is not covered by ε. Look at older or public "
    "data of the same kind rather than at the events that will be released."
)


def advice(experiment: Experiment, results: pa.Table, size: str = "small") -> list[str]:
    """Return sentences on which settings to take, by the weighted error; all compared at the ticks that all starts
    share.
    """
    private = {name for name in experiment.methods if experiment.method(name).private}
    private -= {name for name in private if experiment.method(name).floor}
    if not recommend(results, private, size):
        return []
    summary = means(common_ticks(results))
    best = {each: recommend(results, private, each) for each in experiment.queries}
    chosen = _plain(best[size][max(best[size])][0])
    parts = [_usable(best), *_method(experiment, best[size], summary, size), _since(best[size], results, size)]
    parts += [_start(experiment, summary, chosen, size)]
    parts += [_choice(chosen, ending, summary, size) for ending in _CHOICES]
    return [text for text in [*parts, _events(experiment), _UNIT, _LOOKING * experiment.private] if text]


def _plain(method: str) -> str:
    """Return the method that a recommended one is a variant of."""
    for ending in sorted(_CHOICES, key=len, reverse=True):
        method = method.removesuffix(ending)
    return method


def _usable(best: dict[str, Best]) -> str:
    """Return the smallest ε that gives a usable map, for each size of query; or that none does."""
    least = {size: [e for e, (_, _, mean) in of.items() if mean.mean <= USABLE] for size, of in best.items()}
    if not any(least.values()):
        worse = all(mean.mean >= 1 for of in best.values() for _, _, mean in of.values())
        return (
            "No ε that was tried gives a usable map of this data, not even for large queries"
            + (": everything is worse than publishing nothing" if worse else "")
            + ". Publish no more than the total, take longer ticks or a larger ε, or wait until there are more points."
        )
    each = ", ".join(f"{size} {f'ε = {min(of):g}' if of else 'none that was tried'}" for size, of in least.items())
    return (
        f"The smallest ε with a usable map, by the size of queries: {each}. Usable: a weighted error of at most "
        f"{USABLE:g}, which is about a quarter of the points in wrong rectangles."
    )


def _method(experiment: Experiment, best: Best, summary: dict[Key, Mean], size: str) -> list[str]:
    """Return the best method for each ε, beside what publishing nothing, the total alone and Baseline 1 score."""
    each = []
    for epsilon, (method, t0, mean) in sorted(best.items()):
        uniform, offline = (summary.get((size, epsilon, t0, name)) for name in ("uniform", "baseline-1"))
        beside = f", the total alone {uniform}" if uniform else ""
        beside += f", Baseline 1 (not private over time) {offline}" if offline else ""
        better = ["publishing nothing"] if mean.mean >= 1 else []
        better += ["the total alone"] if uniform and uniform.mean < mean.mean else []
        each.append(
            f"Best at ε = {epsilon:g}, {size} queries: {experiment.method(method).label}, from t0 = {t0:g} on: "
            f"weighted error {mean}; publishing nothing 1{beside}."
            + (f" So {' or '.join(better)} would be better." if better else "")
        )
    return each


def _since(best: Best, results: pa.Table, size: str) -> str:
    """Return from which tick on the best methods are better than nothing, where their first releases are not."""
    lines, each = curves(results), []
    for epsilon, (method, t0, _) in sorted(best.items()):
        line = lines[size, epsilon, t0, method]
        worse = np.flatnonzero(line.mean >= 1)
        if worse.size and worse[-1] + 1 < line.tick.size:
            each.append(f"ε = {epsilon:g} up to tick {line.tick[worse[-1]]}, better from {line.tick[worse[-1] + 1]} on")
    if not each:
        return ""
    return (
        f"Early releases of these, {size} queries, are worse than publishing nothing: {'; '.join(each)} (of the ticks "
        "that were measured). A later start (start_after) leaves them out."
    )


def _start(experiment: Experiment, summary: dict[Key, Mean], method: str, size: str) -> str:
    """Return the errors by start of the method that is recommended."""
    if len(experiment.start_after) < 2 or method not in experiment.methods:
        return ""
    by_start: dict[float, list[float]] = {t0: [] for t0 in experiment.start_after}
    for (asked, _, t0, name), mean in summary.items():
        if (asked, name) == (size, method):
            by_start[t0].append(mean.mean)
    each = ", ".join(f"{t0:g}: {np.mean(errors):.3f}" for t0, errors in by_start.items() if errors)
    return (
        f"Start: the weighted error of {experiment.method(method).label} by t0, over the same ticks and averaged over "
        f"ε: {each}. Nothing is released before."
    )


def _choice(method: str, ending: str, summary: dict[Key, Mean], size: str) -> str:
    """Return how a variant of the recommended method does, as the geometric mean of the ratios of errors."""
    setting, other, plain = _CHOICES[ending]
    variant = {key: mean for key, mean in summary.items() if (key[0], key[3]) == (size, method + ending)}
    pairs = [(mean.mean, summary.get((*key[:3], method))) for key, mean in variant.items()]
    ratios = np.array([ours / first.mean for ours, first in pairs if first and first.mean > 0 and ours > 0])
    if not ratios.size:
        return ""
    ratio = float(np.exp(np.log(ratios).mean()))
    verdict = "no clear difference" if abs(np.log(ratio)) < _SAME else f"take {other if ratio < 1 else plain}"
    stale = ", though the picture is older in between: that is counted in" if ending == "-4-ticks" else ""
    return (
        f"{setting}: {verdict}. With {other} the error is {ratio:.2f} times that of {plain} "
        f"({ratios.min():.2f} to {ratios.max():.2f} over ε and t0){stale}."
    )


def _events(experiment: Experiment) -> str:
    setting = load_setting(experiment)
    first = setting.start_tick(min(experiment.start_after))
    per_tick = np.diff(setting.truth.ends)[first:]
    if not per_tick.size:
        return ""
    usual = float(np.median(per_tick))
    enough = "enough" if usual >= _ENOUGH_EVENTS else "few: longer ticks would help"
    return f"Events: {usual:,.0f} a tick after the start (median), which is {enough}; the paper advises at least 100."
