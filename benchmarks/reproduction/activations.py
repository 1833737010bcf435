"""How often the nodes' counters were activated in a run of PHDStream, for which few activations are good news."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from phdstream.arrays import Ints
from phdstream.domains import Domain
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.pictures import Picture, picture_of, say_private, subplots
from phdstream.evaluation.provenance import code_digest
from phdstream.evaluation.setting import Setting, load_setting
from phdstream.evaluation.trials import write_table
from phdstream.evaluation.true_stream import TrueStream
from phdstream.privacy import Event, Simulation
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.state import unnest

__all__ = ["activation_code", "activations", "draw_activations", "write_activations"]

_STYLES = (("#0b62c4", "-"), ("#d1690e", "--"), ("#444444", ":"), ("#7a3e9d", "-."))
_FEW = 40
"""The paper: nine nodes in ten are activated less often than this."""

Runs = dict[tuple[float, int], Ints]


def activations(experiment: Experiment, epsilon: float, seed: int) -> Ints:
    """Return how often each node's counter was activated in a whole run, with the first t0; 0 for inner nodes."""
    setting = load_setting(experiment)
    start = setting.start_tick(experiment.start_after[0])
    stream = PHDStream(setting.domain, epsilon, Event(), noise=Simulation(seed))
    for moment in setting.truth.moments(start, experiment.measure_every, codes=setting.codes):
        stream.update(moment.inserts, moment.deletes)
    return unnest("nodes", stream.to_state()[1])["steps"]


def activation_code(kind: type[Domain]) -> str:
    """Return which code makes these numbers on a kind of domain, as for a trial."""
    return f"{kind.__name__.lower()}:{code_digest(activations, _table, Setting, TrueStream, kind)}"


def write_activations(experiment: Experiment, out: Path) -> Picture:
    """Run every ε and seed; write ``activations.parquet`` and return the figure."""
    wanted = [(epsilon, seed) for epsilon in experiment.epsilons for seed in experiment.seeds]
    runs: Runs = {run: activations(experiment, *run) for run in wanted}
    code = activation_code(type(load_setting(experiment).domain))
    table = _table(experiment, runs).append_column("code", pa.array([code] * len(runs)))
    write_table(out / "activations.parquet", table, experiment.private)
    return draw_activations(runs, experiment.label)


def _table(experiment: Experiment, runs: Runs) -> pa.Table:
    """Return a row for each run: how many nodes, how many ever active, which share of either is activated rarely."""
    rows = [
        {
            "data": experiment.name,
            "epsilon": epsilon,
            "t0": float(experiment.start_after[0]),
            "seed": seed,
            "nodes": times.size,
            "active": int((times > 0).sum()),
            "rare_of_all": float((times < _FEW).mean()),
            "rare_of_active": float((times[times > 0] < _FEW).mean()),
            "median_of_active": float(np.median(times[times > 0])),
            "most": int(times.max()),
        }
        for (epsilon, seed), times in runs.items()
    ]
    return pa.Table.from_pylist(rows)


def draw_activations(runs: Runs, label: str = "") -> Picture:
    """Draw, for the first seed of each ε, which share of the nodes was activated at most so often."""
    figure, axes = subplots(1, 1, panel=(6.4, 3.6))
    axis, drawn = axes[0, 0], dict(reversed(runs))
    for (epsilon, seed), (colour, dash) in zip(reversed(drawn.items()), _STYLES, strict=False):
        times = np.sort(runs[epsilon, seed])
        axis.step(times, np.arange(1, times.size + 1) / times.size, color=colour, ls=dash, label=f"ε = {epsilon:g}")
    axis.axvline(_FEW, color="#8a8a8a", lw=0.9)
    axis.axhline(0.9, color="#8a8a8a", lw=0.9)
    axis.set_xscale("symlog", linthresh=1)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set(xlabel="activations of a node's counter", ylabel="share of nodes with at most so many")
    axis.set(xlim=(0, None), ylim=(0, 1.02))
    axis.grid(alpha=0.25)
    axis.legend(frameon=False, loc="lower right")
    return picture_of(say_private(figure, label))
