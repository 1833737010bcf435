"""One trial on a hard stream: a method, an ε and a seed, measured and written. What is finished is never run again.

A trial's file is named by all that decides its numbers: the stream's generator, what is asked and when, and a digest
of the code of the method. So a change of one method leaves the others' trials as they are.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.hard_streams import STREAMS, HardStream
from phdstream.arrays import Floats, Ints
from phdstream.baselines.releaser import encoded
from phdstream.domains import ROOT, Domain, Hierarchy
from phdstream.evaluation import (
    MethodSpec,
    count_points,
    relative_error,
    sliced_distance,
    standard_methods,
    weighted_error,
)
from phdstream.evaluation.provenance import code_digest
from phdstream.evaluation.trials import write_table
from phdstream.privacy import Simulation
from phdstream.streams.intake import EncodedEvents

__all__ = ["FULL", "QUICK", "Effort", "Trial", "measure", "moments_of", "run_trial", "trial_path"]

_COUNTED_AT_ONCE, _FOR_DISTANCE = 1 << 20, 2_000_000
"""How many points are counted in queries at once, and how many at most the distance is measured on."""


@dataclass(frozen=True)
class Effort:
    """How thoroughly errors are measured: the share of a stream's moments, and how many queries."""

    name: str
    moments: float
    queries: tuple[tuple[str, int], ...]


FULL = Effort("full", 1.0, (("small", 1500), ("medium", 800), ("large", 300)))
QUICK = Effort("quick", 0.5, (("small", 800), ("medium", 400), ("large", 200)))


@dataclass(frozen=True)
class Trial:
    """A method over a stream; ``method`` is "tracking" or one of `standard_methods`."""

    stream: str
    method: str
    epsilon: float
    seed: int

    @property
    def spec(self) -> MethodSpec:
        """What the method is: tracking as `phdstream run` would do it, declared insert-only where nothing goes."""
        known = standard_methods()
        if self.method == "tracking" and not STREAMS[self.stream].deletes:
            return known["tracking-insert-only"]
        return known[self.method]


def moments_of(stream: HardStream, seed: int, share: float = 1.0) -> tuple[int, ...]:
    """Return the ticks to measure: those asked for, or one anywhere in each of some equal spans."""
    if stream.at:
        return stream.at
    number = max(min(stream.moments, 4), round(stream.moments * share))
    ends = np.linspace(0, stream.ticks, number + 1).astype(int)
    drawn = np.random.default_rng([seed, 1 << 20]).integers(ends[:-1], ends[1:]) + 1
    return tuple(drawn.tolist())


@dataclass(frozen=True)
class Truth:
    """A stream in memory: for each batch its codes, its coordinates, and how many of its points lie in each query."""

    domain: Domain
    queries: dict[str, Floats]
    came: Ints
    goes: Ints
    codes: list[Ints]
    coordinates: list[Floats]
    counts: Ints

    def events(self, tick: int) -> tuple[EncodedEvents, EncodedEvents]:
        """Return what comes and what goes at a tick."""
        come, gone = (self._together(self.codes, at == tick) for at in (self.came, self.goes))
        return encoded(come), encoded(gone)

    def live(self, tick: int) -> tuple[int, Floats, Ints]:
        """Return how many points there are, their coordinates (thinned, if many), and how many lie in each query."""
        there = (self.came <= tick) & (tick < self.goes)
        number = sum(self.codes[i].size for i in np.flatnonzero(there))
        thinned = [points[:: thinning(number)] for points in self.coordinates]
        return number, self._together(thinned, there), self.counts[there].sum(axis=0)

    def _together(self, parts: list[Any], chosen: Any) -> Any:
        return np.concatenate([parts[0][:0], *(parts[i] for i in np.flatnonzero(chosen))])


def thinning(number: int) -> int:
    """Return of how many points one is kept for the distance."""
    return max(1, -(-number // _FOR_DISTANCE))


@lru_cache(maxsize=1)
def truth_of(stream: HardStream, seed: int, effort: Effort) -> Truth:
    """Return a stream in memory: made once for the trials that share it."""
    domain = stream.domain()
    queries = stream.queries(domain, dict(effort.queries))
    asked = np.concatenate(list(queries.values()))
    batches = list(stream.batches(seed))
    codes, coordinates = [], []
    for batch in batches:
        found, inside = domain.encode(domain.points(batch.points))
        codes.append(found[inside])
        coordinates.append(located(domain, batch.points, found)[inside])
    counts = np.array([count(points, asked) for points in coordinates])
    came, goes = np.array([[batch.came, batch.goes] for batch in batches]).T
    return Truth(domain, queries, came, goes, codes, coordinates, counts)


def located(domain: Domain, points: Any, codes: Ints) -> Floats:
    """Return coordinates: those of the points, or in a hierarchy the middle of each place's part of a line."""
    if isinstance(domain, Hierarchy):
        return domain.bounds(codes + (ROOT << domain.total_bits)).mean(axis=1, keepdims=True)
    return np.asarray(points, dtype=np.float64)


def count(points: Floats, rectangles: Floats) -> Ints:
    """Return how many points lie in each rectangle, some points at a time: memory stays small."""
    parts = [points[i : i + _COUNTED_AT_ONCE] for i in range(0, max(1, len(points)), _COUNTED_AT_ONCE)]
    return np.sum([count_points(part, rectangles) for part in parts], axis=0)


def measure(
    stream: HardStream, spec: MethodSpec, epsilon: float, seed: int, effort: Effort
) -> Iterator[dict[str, Any]]:
    """Yield a method's errors: a row for each measured tick and size of query. ``seconds``: of a tick, on average."""
    truth, moments = truth_of(stream, seed, effort), moments_of(stream, seed, effort.moments)
    method = spec.make(truth.domain, epsilon, Simulation(seed))
    waiting, spent = [], 0.0
    for tick in range(1, moments[-1] + 1):
        waiting.append(truth.events(tick))
        if spec.memoryless and tick not in moments:
            continue
        come, gone = (encoded(np.concatenate([each.codes for each in kind])) for kind in zip(*waiting, strict=True))
        began, waiting = time.perf_counter(), []
        release = method.update(come, gone if stream.deletes else None)
        spent += time.perf_counter() - began
        if tick in moments:
            for row in errors(truth, tick, release):
                yield row | {"tick": tick, "seconds": spent / tick}


def errors(truth: Truth, tick: int, release: Any) -> Iterator[dict[str, Any]]:
    """Yield all metrics on a release's synthetic points, for each size of query."""
    number, live, true = truth.live(tick)
    domain, sample = truth.domain, release.sample()
    codes = domain.encode(sample)[0] if isinstance(domain, Hierarchy) else np.zeros(0, np.int64)
    points = located(domain, sample, codes)
    found = count(points, np.concatenate(list(truth.queries.values())))
    bounds = domain.bounds(np.array([ROOT])).reshape(2, -1).T
    distance = sliced_distance(live, points[:: thinning(len(points))], bounds)
    start = 0
    for size, rectangles in truth.queries.items():
        part = slice(start, start := start + len(rectangles))
        yield {
            "size": size,
            "error": relative_error(true[part], found[part], number),
            "weighted_error": weighted_error(true[part], found[part]),
            "distance": distance,
            "total": number,
            "synthetic": len(points),
        }


@cache
def _code(stream: str, make: Any, memoryless: bool) -> str:
    """Return a digest of the code behind a trial's numbers."""
    hard = STREAMS[stream]
    return code_digest(make, measure, hard.batches, hard.domain, hard.queries, type(hard.domain()), memoryless)


def _parameters(trial: Trial, effort: Effort) -> dict[str, Any]:
    stream, spec = STREAMS[trial.stream], trial.spec
    when = {"moments": moments_of(stream, trial.seed, effort.moments)}
    return asdict(trial) | asdict(effort) | when | {"code": _code(trial.stream, spec.make, spec.memoryless)}


def trial_path(folder: Path, trial: Trial, effort: Effort) -> Path:
    """Return a trial's file: a readable name, and a digest that tells trials of other code or settings apart."""
    text = json.dumps(_parameters(trial, effort), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    name = f"{trial.stream}_{trial.method}_epsilon-{trial.epsilon:g}_seed-{trial.seed}_{effort.name}_{digest}.parquet"
    return folder / name.replace(" ", "-").replace(",", "")


def run_trial(folder: Path, trial: Trial, effort: Effort) -> None:
    """Run a trial and write its file, whole or not at all."""
    about = asdict(trial) | {"code": _code(trial.stream, trial.spec.make, trial.spec.memoryless)}
    rows = measure(STREAMS[trial.stream], trial.spec, trial.epsilon, trial.seed, effort)
    table = pa.Table.from_pylist([about | row for row in rows])
    write_table(trial_path(folder, trial, effort), table, private=False)
