"""An experiment: which data, which methods, which ε, when to start, which seeds. Its trials are all combinations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phdstream.evaluation.methods import MethodSpec, MethodTable, standard_methods

__all__ = ["DO_NOT_PUBLISH", "Experiment", "Trial"]

DO_NOT_PUBLISH = "contains private information: do not publish"
"""Said by everything that was computed from a file of true events."""


@dataclass(frozen=True)
class Trial:
    """One method over the whole data: with an ε, a start (a tick, or for circles a share of the data) and a seed."""

    method: str
    epsilon: float
    t0: float
    seed: int

    def __str__(self) -> str:
        return f"{self.method}, ε = {self.epsilon:g}, t0 = {self.t0:g}, seed {self.seed}"


@dataclass(frozen=True)
class Experiment:
    """A checked experiment. ``base`` is the folder in which its files are; ``table`` says what its methods are."""

    name: str
    data: dict[str, Any]
    domain: dict[str, Any]
    methods: tuple[str, ...]
    epsilons: tuple[float, ...]
    start_after: tuple[float, ...]
    seeds: tuple[int, ...]
    measure_every: int
    queries: dict[str, int]
    base: Path
    table: MethodTable = standard_methods

    @property
    def private(self) -> bool:
        """Whether the data comes from a file, so that everything computed from it is private."""
        return "file" in self.data

    @property
    def label(self) -> str:
        """What every figure and page must say: that it is not to be published, or nothing."""
        return DO_NOT_PUBLISH if self.private else ""

    def method(self, name: str) -> MethodSpec:
        """Return what one of its methods is."""
        return self.table()[name]

    def trials(self) -> Iterator[Trial]:
        """Yield all trials, seed by seed, so that an interrupted experiment has whole comparisons."""
        for seed in self.seeds:
            for epsilon in self.epsilons:
                for t0 in self.start_after:
                    yield from (Trial(method, epsilon, t0, seed) for method in self.methods)

    def setting(self) -> str:
        """Return, as text, what all trials share besides files: data, domain, queries, when to measure."""
        shared = {"data": self.data, "domain": self.domain, "queries": self.queries, "every": self.measure_every}
        return json.dumps(shared, sort_keys=True, default=str)
