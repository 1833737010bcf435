"""Range queries on a release's tree: each query descends only where its edge runs.

A node that a query covers wholly answers for everything below it; one that it misses is dropped; only nodes
cut by its edge are opened. With ``c_u`` the covered share of node u, the answer is ``Σ c_v · count(v)`` over
the cells and its noise variance ``Σ c_u² · own_variance(u)`` over all nodes, both as if all nodes had been
compared. The variance of the whole error has besides how unevenly points may lie in the cells that are cut. On a
domain that cannot compare pair by pair (`Domain.covered` is None) all nodes are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints, ragged
from phdstream.domains import Domain
from phdstream.domains.domain import CoveredShare
from phdstream.release.estimate import Estimate
from phdstream.release.share_noise import share_noise, share_noise_of_all
from phdstream.release.unevenness import ALIKE, Unevenness

__all__ = ["answer_by_descent", "answer_from_all", "answer_queries"]

_QUERIES_AT_ONCE = 4096
_PAIRS_AT_ONCE = 4_000_000

Overlap: TypeAlias = Callable[[Ints, NDArray[Any]], Floats]
"""The share of each node's measure (columns) inside each query (rows)."""


def answer_queries(
    domain: Domain,
    estimate: Estimate,
    queries: NDArray[Any],
    overlap: Overlap,
    covered: CoveredShare | None,
    within: Callable[[Ints], Floats] | None = None,
    alike: float | None = None,
) -> Floats:
    """Return, for each query, the estimate, the unbiased one, and the variances of its noise and of its whole error.

    Polygons are asked for by their positions, whole numbers: cells that their edges cut err together (see
    `phdstream.release.unevenness`), as far as ``alike`` says if it is given. Of each node only the share that
    ``within`` says is asked for.
    """
    if alike is None:
        alike = ALIKE if queries.ndim == 1 and queries.dtype.kind == "i" else 0.0
    if within is not None:
        overlap, covered = _narrowed(overlap, covered, within)
    if covered is not None:
        return answer_by_descent(domain, estimate, queries, covered, alike)
    rows = max(1, _PAIRS_AT_ONCE // estimate.node.size)
    parts = [
        answer_from_all(domain, estimate, queries[i : i + rows], overlap, alike) for i in range(0, len(queries), rows)
    ]
    return np.concatenate(parts, axis=1) if parts else np.zeros((4, 0))


def _narrowed(
    overlap: Overlap, covered: CoveredShare | None, within: Callable[[Ints], Floats]
) -> tuple[Overlap, CoveredShare | None]:
    """Return the same shares, of which only those within count."""

    def less(nodes: Ints, queries: NDArray[Any]) -> Floats:
        return overlap(nodes, queries) * within(nodes)

    if covered is None:
        return less, None
    whole = covered
    return less, lambda nodes, queries, exact: whole(nodes, queries, exact) * within(nodes)


def answer_from_all(domain: Domain, e: Estimate, queries: NDArray[Any], overlap: Overlap, alike: float = 0.0) -> Floats:
    """Return the answers by comparing all nodes with all queries; a node's noise enters with its overlap squared."""
    share = overlap(e.node, queries)
    parent = _parents(domain, e)
    uneven = Unevenness.of(e, parent)
    of_leaves, noise = share[:, e.leaf], share**2 @ e.own_variance
    cut = uneven.of_cut(np.arange(e.node.size), np.clip(share, 0, 1))
    error = noise + cut.sum(axis=1) + (alike * np.sqrt(cut).sum(axis=1)) ** 2
    if e.share_variance.any():
        noise, error = noise + share_noise_of_all(e, parent, share, [e.share_variance, uneven.shares])
    return np.stack([of_leaves @ e.count[e.leaf], of_leaves @ e.unbiased[e.leaf], noise, error])


def answer_by_descent(
    domain: Domain, estimate: Estimate, queries: NDArray[Any], covered: CoveredShare, alike: float = 0.0
) -> Floats:
    """Return the same by descent from the root, a batch of queries at a time."""
    first, past = _children(domain, estimate)
    parent = _parents_of(first, past)
    variance_below, uneven = _subtree_sums(domain, estimate, parent), Unevenness.of(estimate, parent)
    parts = [
        _descend(estimate, variance_below, uneven, first, past, queries[i : i + _QUERIES_AT_ONCE], covered, alike)
        for i in range(0, len(queries), _QUERIES_AT_ONCE)
    ]
    if estimate.share_variance.any():
        weights = [estimate.share_variance, uneven.shares]
        for i, part in enumerate(parts):
            some = queries[i * _QUERIES_AT_ONCE : (i + 1) * _QUERIES_AT_ONCE]
            part[2:] += share_noise(estimate, first, past, some, covered, weights)
    return np.concatenate(parts, axis=1) if parts else np.zeros((4, 0))


def _parents(domain: Domain, estimate: Estimate) -> Ints:
    """Return where each node's parent stands in the estimate; the root's is the root."""
    above = np.array([0, *domain.level_bits])[domain.levels(estimate.node)]
    at: Ints = np.searchsorted(estimate.node, np.maximum(estimate.node >> above, 1)).astype(np.int64)
    return at


def _children(domain: Domain, estimate: Estimate) -> tuple[Ints, Ints]:
    """Return where each node's children stand in the estimate, from and up to; nodes are in order, level by level."""
    levels = domain.levels(estimate.node)
    bits = np.array([*domain.level_bits, 0])[levels]
    first = np.searchsorted(estimate.node, estimate.node << bits)
    past = np.searchsorted(estimate.node, (estimate.node + 1) << bits)
    return np.where(estimate.leaf, 0, first), np.where(estimate.leaf, 0, past)


def _parents_of(first: Ints, past: Ints) -> Ints:
    """Return the same as `_parents`, from where each node's children stand."""
    parent = np.zeros(first.size, dtype=np.int64)
    inner = np.flatnonzero(past > first)
    parent[1:] = np.repeat(inner, (past - first)[inner])
    return parent


def _subtree_sums(domain: Domain, estimate: Estimate, parent: Ints) -> Floats:
    """Return each node's own variance with all below it. Children stand after their parents, so from the end."""
    total = estimate.own_variance.copy()
    if not total[1:].any():
        return total
    begins = np.searchsorted(estimate.node, domain.first_nodes[1:])
    for begin, end in zip(begins[::-1], [total.size, *begins[:0:-1]], strict=True):
        np.add.at(total, parent[begin:end][::-1], total[begin:end][::-1])
    return total


def _descend(
    e: Estimate,
    variance_below: Floats,
    uneven: Unevenness,
    first: Ints,
    past: Ints,
    queries: NDArray[Any],
    covered: CoveredShare,
    alike: float,
) -> Floats:
    answer, edge = np.zeros((4, len(queries))), np.zeros(len(queries))
    query, at = np.arange(len(queries)), np.zeros(len(queries), dtype=np.int64)
    while query.size:
        share = covered(e.node[at], queries[query], e.leaf[at] | (e.own_variance[at] > 0))
        query, at, share = query[share > 0], at[share > 0], share[share > 0]
        whole, leaf = share >= 1, e.leaf[at]
        ends = whole | leaf
        np.add.at(answer[0], query[ends], (share * e.count[at])[ends])
        np.add.at(answer[1], query[ends], (share * e.unbiased[at])[ends])
        np.add.at(answer[2], query, np.where(whole, variance_below[at], share**2 * e.own_variance[at]))
        cut = ~whole & (uneven.square[at] > 0)
        variance = uneven.of_cut(at[cut], share[cut])
        np.add.at(answer[3], query[cut], variance)
        np.add.at(edge, query[cut], np.sqrt(variance))
        query, at = query[~ends], at[~ends]
        owner, within = ragged(past[at] - first[at])
        query, at = query[owner], first[at][owner] + within
    answer[3] += answer[2] + (alike * edge) ** 2
    return answer
