"""The methods that only the benchmarks know, beside those that every evaluation can name."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.reproduction.as_published import AsPublishedNotPrivate
from benchmarks.reproduction.random_points import PointsAsInPaper
from benchmarks.reproduction.variants import PublishedScoreNotPrivate, WithoutDeletes
from phdstream.evaluation.methods import MethodSpec, phdstream_with, standard_methods, tracking_with
from phdstream.privacy import Event, Record
from phdstream.streams.paper.counters import Block
from phdstream.streams.paper.stream import PHDStream

__all__ = ["paper_methods"]

_WINDOW = 30


def paper_methods() -> Mapping[str, MethodSpec]:
    """Return all methods of the benchmarks by name: what `read_experiment` is given as its ``methods``."""
    return {**standard_methods(), **_OURS}


def _block(size: int) -> MethodSpec:
    return MethodSpec(
        f"PHDStream, Block {size} counter", phdstream_with(counter=lambda epsilon: Block(epsilon, size=size))
    )


_OURS: dict[str, MethodSpec] = {
    "tracking-window-30": MethodSpec(
        "Tracking, window of 30 ticks",
        lambda domain, epsilon, noise: WithoutDeletes(tracking_with(window=_WINDOW)(domain, epsilon, noise)),
        style=("#111111", "--", "o"),
    ),
    "phdstream-window-30": MethodSpec(
        "PHDStream, window of 30 ticks",
        lambda domain, epsilon, noise: WithoutDeletes(phdstream_with(window=_WINDOW)(domain, epsilon, noise)),
    ),
    "phdstream-as-in-paper": MethodSpec(
        "PHDStream, points as in the paper",
        lambda domain, epsilon, noise: PointsAsInPaper(phdstream_with()(domain, epsilon, noise)),
    ),
    **{f"phdstream-block-{size}": _block(size) for size in (2, 4, 16, 32)},
    "phdstream-record": MethodSpec(
        "PHDStream, per record (sensitivity 2)",
        lambda domain, epsilon, noise: PHDStream(domain, epsilon, Record(), noise=noise),
        style=("#7a3e9d", "-.", "P"),
    ),
    "phdstream-half-epsilon": MethodSpec(
        "PHDStream, ε/2 for each event (sensitivity 2)",
        lambda domain, epsilon, noise: PHDStream(domain, epsilon / 2, Event(), noise=noise),
        style=("#7a3e9d", ":", "X"),
    ),
    "as-published-not-private": MethodSpec(
        "PHDStream as published: score, noise, points (not private)",
        lambda domain, epsilon, noise: AsPublishedNotPrivate(domain, epsilon, noise=noise),
        private=False,
        style=("#7a3e9d", "-", "d"),
    ),
    "as-printed-not-private": MethodSpec(
        "PHDStream as published, counts with noise of scale 4/ε (not private)",
        lambda domain, epsilon, noise: AsPublishedNotPrivate(domain, epsilon, noise=noise, count_noise=4.0),
        private=False,
        style=("#a77bc0", ":", "d"),
    ),
    "phdstream-published-not-private": MethodSpec(
        "PHDStream, score as published (not private)",
        lambda domain, epsilon, noise: PublishedScoreNotPrivate(domain, epsilon, noise=noise),
        private=False,
        style=("#7a3e9d", "--", "*"),
    ),
}
