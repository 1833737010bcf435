"""The paper's PHDStreamTree with counters, to the letter, on a small complete tree; only the score is the repaired one.

Every node of T is held, G is updated by the consistency operator Ext as defined (a sum over all pairs of
nodes), counters are the paper's pseudocode, one object a node. Slow and simple: what the fast implementation
is checked against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from phdstream.domains import Domain
from phdstream.privacy import Noise, SplitRule

AddNoise = Callable[[int, float], int]


class SimpleCounter:
    """Algorithm "Simple counter"."""

    def __init__(self, epsilon: float) -> None:
        self.scale, self.g = 1 / epsilon, 0

    def __call__(self, f: int, noisy: AddNoise) -> int:
        self.g = self.g + noisy(f, self.scale)
        return self.g


class BlockCounter:
    """Algorithm "Block counter with block size B"."""

    def __init__(self, epsilon: float, size: int = 8) -> None:
        self.scale, self.size = 2 / epsilon, size
        self.t = self.alpha = self.block = self.last_block = 0

    def __call__(self, f: int, noisy: AddNoise) -> int:
        self.t += 1
        self.block += f
        if self.t % self.size == 0:
            self.alpha = 0
            self.last_block += noisy(self.block, self.scale)
            self.block = 0
        else:
            self.alpha += noisy(f, self.scale)
        return self.last_block + self.alpha


class BinaryTreeCounter:
    """Algorithm "Binary Tree counter", with scale (floor(log2 T) + 1)/ε; at its end it starts over, twice as long."""

    def __init__(self, epsilon: float, horizon: int) -> None:
        self.epsilon, self.done = epsilon, 0
        self._restart(horizon)

    def _restart(self, horizon: int) -> None:
        self.horizon, self.t = horizon, 0
        self.levels = math.floor(math.log2(horizon)) + 1
        self.alpha, self.noisy = [0] * self.levels, [0] * self.levels

    def __call__(self, f: int, noisy: AddNoise) -> int:
        self.t += 1
        bits = [i for i in range(self.levels) if self.t >> i & 1]
        j = bits[0]
        self.alpha[j] = sum(self.alpha[:j]) + f
        self.noisy[j] = noisy(self.alpha[j], self.levels / self.epsilon)
        for i in range(j):
            self.alpha[i] = self.noisy[i] = 0
        g = self.done + sum(self.noisy[i] for i in bits)
        if self.t == self.horizon:
            self.done = g
            self._restart(2 * self.horizon)
        return g


class DenseStream:
    """PHDStreamTree with counters on every node of a complete tree."""

    def __init__(
        self, domain: Domain, rule: SplitRule, counter: Callable[[], Callable[[int, AddNoise], int]], noise: Noise
    ) -> None:
        self.domain, self.rule, self.noise = domain, rule, noise
        self.levels = [np.array([1])]
        for _ in range(domain.depth):
            self.levels.append(domain.children(self.levels[-1])[0])
        self.nodes = [int(v) for level in self.levels for v in level]
        self.depth = {int(v): i for i, level in enumerate(self.levels) for v in level}
        self.counters = {v: counter() for v in self.nodes}
        self.outputs = dict.fromkeys(self.nodes, 0)
        self.G = dict.fromkeys(self.nodes, 0.0)
        self.increments: list[dict[int, int]] = []

    def children(self, v: int) -> list[int]:
        return (
            [v * self.domain.fanout + k for k in range(self.domain.fanout)] if self.depth[v] < self.domain.depth else []
        )

    def ancestors(self, v: int) -> list[int]:
        return [v >> (self.domain.level_bits[0] * i) for i in range(self.depth[v] + 1)]

    def ext(self, d: dict[int, float]) -> dict[int, float]:
        """Ext(F)(u) = Σ_v F(v)·β^-max(0, d(v,u)), where only ancestors and descendants of u count."""
        result = dict.fromkeys(self.nodes, 0.0)
        for v, amount in d.items():
            for u in self.nodes:
                if v in self.ancestors(u):
                    result[u] += amount * self.domain.fanout ** -(self.depth[u] - self.depth[v])
                elif u in self.ancestors(v):
                    result[u] += amount
        return result

    def count(self, codes: Sequence[int], v: int) -> int:
        first, past = self.domain.code_range(np.array([v]))
        return sum(int(first[0]) <= code < int(past[0]) for code in codes)

    def projection(self) -> dict[int, float]:
        """P: G made non-negative and consistent from the top down, in proportion to what is positive."""
        P = {1: max(self.G[1], 0.0)}
        for v in self.nodes:
            family = self.children(v)
            weights = [max(self.G[w], 0.0) for w in family]
            for w, weight in zip(family, weights, strict=True):
                P[w] = P[v] * (weight / sum(weights) if sum(weights) > 0 else 1 / len(family))
        return P

    def update(self, inserts: Sequence[int], deletes: Sequence[int]) -> list[int]:
        """Take a tick's codes; return the leaves of T(t)."""
        P = self.projection()
        leaves = self._priv_tree(P, inserts)
        d = {}
        for v in leaves:
            before = self.outputs[v]
            self.outputs[v] = self.counters[v](
                self.count(inserts, v) - self.count(deletes, v), partial(self._noisy, v=v)
            )
            d[v] = self.outputs[v] - before
        self.increments.append(d)
        self._add(d, +1)
        return leaves

    def expire(self, tick: int) -> None:
        self._add(self.increments[tick], -1)

    def _add(self, d: dict[int, int], sign: int) -> None:
        for u, amount in self.ext({v: float(sign * x) for v, x in d.items()}).items():
            self.G[u] += amount

    def _priv_tree(self, P: dict[int, float], inserts: Sequence[int]) -> list[int]:
        leaves, unvisited = [], [1]
        for v in unvisited:
            b = max(math.floor(P[v]) + self.count(inserts, v) - self.depth[v] * self.rule.bias, self.rule.floor)
            if self.depth[v] < self.domain.depth and self._noisy(b, self.rule.scale, v) > self.rule.threshold:
                unvisited.extend(self.children(v))
            else:
                leaves.append(v)
        return leaves

    def _noisy(self, value: int, scale: float, v: int) -> int:
        return int(self.noise.add(np.array([value]), scale, np.array([v]))[0])
