"""What an experiment says about settings, in sentences: method, ε, start, counter, fanout, length of ticks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.setting import load_setting
from phdstream.evaluation.summary import Key, Mean, common_ticks, means, recommend

__all__ = ["advice"]

_GOOD, _SAME, _ENOUGH_EVENTS = 0.1, 0.05, 100
_CHOICES = {
    "phdstream-block": ("Counter", "the Block counter", "the Simple counter"),
    "phdstream-4": ("Fanout", "fanout 4", "fanout 2"),
    "phdstream-4-ticks": ("Ticks", "ticks four times as long", "ticks as they are"),
}
"""What a method tries that plain PHDStream does not: the setting, its choice, and the plain one."""
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
    """Return sentences on which settings to take, from the errors of one size of query; all compared at the ticks
    that all starts share.
    """
    private = {
        name for name in experiment.methods if experiment.method(name).private and not experiment.method(name).floor
    }
    best = recommend(results, private, size)
    if not best:
        return []
    summary = {key: mean for key, mean in means(common_ticks(results)).items() if key[0] == size}
    parts = [*_method(experiment, best, summary, size), _epsilon(best, size), _start(experiment, summary)]
    parts += _paper_only(best, [_choice(name, summary) for name in _CHOICES if name in experiment.methods])
    return [text for text in [*parts, _events(experiment), _UNIT, _LOOKING * experiment.private] if text]


def _paper_only(best: Best, sentences: list[str]) -> list[str]:
    """Say of what was measured with the paper's method that it is about that method, where another one is best."""
    if all(method.startswith("phdstream") for method, _, _ in best.values()):
        return sentences
    return [f"Only for the paper's method, should you use it: {text}" for text in sentences if text]


def _method(experiment: Experiment, best: Best, summary: dict[Key, Mean], size: str) -> list[str]:
    each = []
    for epsilon, (method, t0, mean) in sorted(best.items()):
        floor = summary.get((size, epsilon, t0, "baseline-1"))
        beside = f", Baseline 1 (not private) {floor}" if floor else ""
        each.append(
            f"Best at ε = {epsilon:g}: {experiment.method(method).label}, from t0 = {t0:g} on: error {mean}{beside}."
        )
    return each


def _epsilon(best: Best, size: str) -> str:
    good = [epsilon for epsilon, (_, _, mean) in best.items() if mean.mean <= _GOOD]
    return "ε: " + (
        f"{min(good):g} is the smallest one tried with an average error of {size} queries of at most {_GOOD:.0%}."
        if good
        else f"none that was tried brings the average error of {size} queries to {_GOOD:.0%}; ask about larger areas, "
        "or use longer ticks or a larger ε."
    )


def _start(experiment: Experiment, summary: dict[Key, Mean]) -> str:
    if len(experiment.start_after) < 2 or "phdstream" not in experiment.methods:
        return ""
    by_start = {
        t0: float(np.mean([mean.mean for key, mean in summary.items() if key[2:] == (t0, "phdstream")]))
        for t0 in experiment.start_after
    }
    each = ", ".join(f"{t0:g}: {error:.3f}" for t0, error in by_start.items())
    return (
        f"Start: PHDStream's error by t0, over the same ticks and averaged over ε: {each}. Nothing is released before."
    )


def _choice(name: str, summary: dict[Key, Mean]) -> str:
    """Return how a setting other than the plain one does, as the geometric mean of the ratios of errors."""
    setting, other, plain = _CHOICES[name]
    pairs = [(mean.mean, summary.get((*key[:3], "phdstream"))) for key, mean in summary.items() if key[3] == name]
    ratios = np.array([ours / first.mean for ours, first in pairs if first and first.mean > 0 and ours > 0])
    if not ratios.size:
        return ""
    ratio = float(np.exp(np.log(ratios).mean()))
    verdict = "no clear difference" if abs(np.log(ratio)) < _SAME else f"take {other if ratio < 1 else plain}"
    stale = ", though the picture is older in between: that is counted in" if name == "phdstream-4-ticks" else ""
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
