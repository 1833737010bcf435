"""Encoding and counting events, and noise: the parts that see every event or every node."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import phdstream as phd
from benchmarks.measure import Figure, best
from phdstream.arrays import Ints
from phdstream.privacy.laplace import discrete_laplace
from phdstream.streams.code_counts import CodeCounts

SQUARE = phd.Box([(0, 1), (0, 1)])


def encode_and_count(sizes: list[int], box: phd.Box = SQUARE, group: str = "events") -> list[Figure]:
    """Encode points and count them in 4,096 nodes, against copying them and against sorting their codes."""
    figures = []
    nodes = np.arange(1 << 12, 1 << 13)
    for size in sizes:
        points = np.random.default_rng(1).random((size, box.dimension))
        codes = box.encode(points)[0]
        repeats = 3 if size >= 10**8 else 5
        copying = best(points.copy, repeats)
        sorting = best(partial(np.sort, codes), repeats)
        encoding = best(partial(box.encode, points), repeats)
        counting = best(partial(_count, box, codes, nodes), repeats)
        figures += [
            Figure(group, "encode", size, encoding, "copy of the points", copying),
            Figure(group, "count", size, counting, "np.sort of the codes", sorting),
            Figure(group, "encode + count", size, encoding + counting, "np.sort of the codes", sorting),
        ]
    return figures


def _count(box: phd.Box, codes: Ints, nodes: Ints) -> Ints:
    return CodeCounts(codes, box.total_bits).within(nodes)


def encode_in_dimensions(size: int, dimensions: list[int]) -> list[Figure]:
    """Encode points of several dimensions, at 20 bits in all."""
    boxes = [phd.Box([(0, 1)] * d, depth=20) for d in dimensions]
    found = [encode_and_count([size], box, f"dimension {box.dimension}")[0] for box in boxes]
    return [
        replace(figure, group="dimension", what=f"encode {size:,} points", size=box.dimension)
        for figure, box in zip(found, boxes, strict=True)
    ]


def noise(size: int, scales: list[float]) -> list[Figure]:
    """Draw exact noise, against OpenDP's vector call for as many samples."""
    figures = []
    for scale in scales:
        theirs = _opendp(scale)
        zeros = [0] * min(size, 10_000)
        reference = best(partial(theirs, zeros), 3) * size / len(zeros)
        seconds = best(partial(discrete_laplace, scale, size))
        figures.append(Figure("noise", f"scale {scale:g}", size, seconds, "OpenDP's vector call", reference))
    return figures


def _opendp(scale: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=scale)
