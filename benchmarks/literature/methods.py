"""The methods that are compared: tracking's start, the published ones, and what costs nothing to publish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from benchmarks.literature.dawa import dawa
from benchmarks.literature.densities import Cells, Density, Grid, Points
from benchmarks.literature.grids import adaptive_grid, uniform_grid
from benchmarks.literature.privelet import privelet
from benchmarks.literature.privtree import privtree
from benchmarks.literature.quadtree import quad_opt
from phdstream.arrays import Floats
from phdstream.domains import Box
from phdstream.evaluation import standard_methods
from phdstream.privacy import Simulation

__all__ = ["METHODS", "OURS", "PLAIN", "POINTS", "PUBLISHED", "Method", "Publish", "tracking"]

Publish: TypeAlias = Callable[[Floats, int, float, int], Mapping[str, Density]]
"""From points, how often the square may be halved, ε and a seed, what a method publishes, in one or two variants."""
OneShot: TypeAlias = Callable[[Floats, float, np.random.Generator], Density]
PLAIN, NONNEGATIVE, POINTS = "plain", "non-negative", "points"
OURS = "tracking"


@dataclass(frozen=True)
class Method:
    """A method; ``published`` are those that ours must not lose against."""

    label: str
    publish: Publish
    published: bool = True


def tracking(points: Floats, depth: int, epsilon: float, seed: int) -> dict[str, Density]:
    """Return the first release of `TrackingStream`, all of ε for it: its cells, and its synthetic points."""
    domain = Box([(0, 1), (0, 1)], depth=depth)
    release = standard_methods()["oracle"].make(domain, epsilon, Simulation(seed)).update(points)
    found = release.estimate
    return {
        PLAIN: Cells(domain.bounds(found.node[found.leaf]), found.count[found.leaf]),
        POINTS: Points(release.sample()),
    }


def once(make: OneShot, points: Floats, depth: int, epsilon: float, seed: int) -> dict[str, Density]:
    """Return what a published method makes, as it is and with counts that are not negative. It knows no depth."""
    found = make(points, epsilon, np.random.default_rng(seed))
    return {PLAIN: found, NONNEGATIVE: found.nonnegative()}


def nothing(points: Floats, depth: int, epsilon: float, seed: int) -> dict[str, Density]:
    """Return no points at all."""
    return {PLAIN: Grid(np.zeros((1, 1)))}


def total_alone(points: Floats, depth: int, epsilon: float, seed: int) -> dict[str, Density]:
    """Return the noisy number of points, spread evenly."""
    return {PLAIN: Grid(np.full((1, 1), len(points) + np.random.default_rng(seed).laplace(0, 1 / epsilon)))}


METHODS: dict[str, Method] = {
    OURS: Method("ours", tracking, published=False),
    "privtree": Method("PrivTree", partial(once, privtree)),
    "adaptive": Method("adaptive grid", partial(once, adaptive_grid)),
    "uniform-grid": Method("uniform grid", partial(once, uniform_grid)),
    "quad-opt": Method("quadtree", partial(once, quad_opt)),
    "privelet": Method("Privelet", partial(once, privelet)),
    "dawa": Method("DAWA", partial(once, dawa)),
    "nothing": Method("nothing", nothing, published=False),
    "total": Method("total alone", total_alone, published=False),
}
PUBLISHED = tuple(name for name, method in METHODS.items() if method.published)
