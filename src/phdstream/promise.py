"""What a stream promises, as plain data for machines and in plain words for people. Public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from phdstream.privacy import noise_variance
from phdstream.version import __version__

if TYPE_CHECKING:
    from phdstream.stream import PHDStream

__all__ = ["SIMULATED", "describe", "facts", "parameters"]

SIMULATED = "simulated, not private"


def facts(stream: PHDStream) -> dict[str, Any]:
    """Return what every release states: unit, ε, domain, method, version, and what it may claim."""
    return {
        "product": "phdstream",
        "version": __version__,
        "privacy": _claim(stream),
        "epsilon": stream.budget.epsilon,
        "unit": stream.unit.to_dict(),
        "domain": stream.domain.summary(),
        "method": "phdstream",
        "counter": stream.counter.to_dict(),
        "window": stream.window,
    }


def _claim(stream: PHDStream) -> str:
    if not stream.noise.private:
        return SIMULATED
    return f"{stream.budget.epsilon:g}-differentially private for {stream.unit.promise}, over the whole stream"


def parameters(stream: PHDStream) -> dict[str, Any]:
    """Return all that fixes a stream before it sees data; two streams that agree here are the same stream."""
    return {
        "domain": stream.domain.to_dict(),
        "epsilon": stream.budget.epsilon,
        "unit": stream.unit.to_dict(),
        "counter": stream.counter.to_dict(),
        "threshold": stream.rule.threshold,
        "window": stream.window,
        "insert_only": stream.insert_only,
        "start_after": stream.start_after,
        "tree_share": stream.tree_share,
        "max_nodes": stream.max_nodes,
        "private_noise": stream.noise.private,
    }


def describe(stream: PHDStream) -> str:
    """Return the promise, the budget and the noise in plain words."""
    budget, rule, counter = stream.budget, stream.rule, stream.counter
    deviation = float(np.sqrt(noise_variance(counter.scales(1)[0])))
    lines = [
        f"PHDStream on {stream.domain!r}",
        f"Promise: {_claim(stream)}.",
        *_meaning(stream),
        f"Records: {_lifetime(stream)}",
        f"Budget: an insert costs {budget.tree:.4g} for choosing the tree and {budget.count:.4g} for counting; "
        + ("a delete costs nothing here." if not stream._intake.deletes else f"a delete costs {budget.count:.4g}."),
        f"Choosing the tree: noise of scale {rule.scale:.4g}, {rule.bias} off per level, threshold {rule.threshold}; "
        f"its exact worst-case loss is {rule.loss:.4g}.",
        f"Counting: {type(counter).__name__} counters; the first count of a cell is off by {deviation:.3g} (standard "
        f"deviation), by at most {counter.accuracy(1, 0.05):.3g} with 95% probability.",
        f"Private at rest: {_at_rest(stream)}.",
    ]
    return "\n".join(lines)


def _meaning(stream: PHDStream) -> list[str]:
    if not stream.noise.private:
        return ["  The noise is seeded, so it can be subtracted: never publish what this stream says of real people."]
    epsilon = stream.budget.epsilon
    return [
        f"  Whatever is published, ever, is at most e^{epsilon:g} = {np.exp(epsilon):.3g} times as likely with one",
        "  such unit in the data as without it, or the reverse. Smaller ε is more private.",
    ]


def _lifetime(stream: PHDStream) -> str:
    if stream.window:
        return f"each lives {stream.window} ticks and then expires, at no privacy cost."
    return "they stay for ever (insert-only)." if stream.insert_only else "they stay until they are deleted."


def _at_rest(stream: PHDStream) -> str:
    held = ["the exact partial sums of the counters"] if stream.counter.private_columns else []
    held += ["the table of users and what each has used"] if stream.unit.to_dict()["type"] == "user" else []
    held += ["the events waiting for the start"] if stream.start_after > 1 else []
    held += ["the operator's tally of unused events, and coarse live counts"]
    return "a saved state holds " + ", ".join(held)
