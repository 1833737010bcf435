"""What a stream promises, as plain data for machines and in plain words for people. Public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from phdstream.version import __version__

if TYPE_CHECKING:
    from phdstream.streams.stream import Stream

__all__ = ["SIMULATED", "describe", "metadata", "parameters"]

SIMULATED = "simulated, not private"


def metadata(stream: Stream) -> dict[str, Any]:
    """Return what every release states: unit, ε, domain, method, version, and what it may claim."""
    return {
        "product": "phdstream",
        "version": __version__,
        "privacy": _claim(stream),
        "epsilon": stream.budget.epsilon,
        "unit": stream.unit.to_dict(),
        "domain": stream.domain.summary(),
        "method": stream.method,
        "window": stream.window,
    } | stream.method_metadata()


def _claim(stream: Stream) -> str:
    if not stream.noise.private:
        return SIMULATED
    return f"{stream.budget.epsilon:g}-differentially private for {stream.unit.guarantee}, over the whole stream"


def parameters(stream: Stream) -> dict[str, Any]:
    """Return all that fixes a stream before it sees data; two streams that agree here are the same stream."""
    return {
        "domain": stream.domain.to_dict(),
        "epsilon": stream.budget.epsilon,
        "unit": stream.unit.to_dict(),
        "method": stream.method,
        "window": stream.window,
        "insert_only": stream.insert_only,
        "start_after": stream.start_after,
        "max_nodes": stream.max_nodes,
        "private_noise": stream.noise.private,
    } | stream.options()


def describe(stream: Stream) -> str:
    """Return the promise, the budget and the noise in plain words."""
    lines = [
        f"{type(stream).__name__} on {stream.domain!r}",
        f"Promise: {_claim(stream)}.",
        *_meaning(stream),
        f"Records: {_lifetime(stream)}",
        *stream.method_lines(),
        f"Private at rest: {_at_rest(stream)}.",
    ]
    return "\n".join(lines)


def _meaning(stream: Stream) -> list[str]:
    if not stream.noise.private:
        return ["  The noise is seeded, so it can be subtracted: never publish what this stream says of real people."]
    epsilon = stream.budget.epsilon
    return [
        f"  Whatever is published, ever, is at most e^{epsilon:g} = {np.exp(epsilon):.3g} times as likely with one",
        "  such unit in the data as without it, or the reverse. Smaller ε is more private.",
    ]


def _lifetime(stream: Stream) -> str:
    if stream.window:
        return f"each lives {stream.window} ticks and then expires, at no privacy cost."
    return "they stay for ever (insert-only)." if stream.insert_only else "they stay until they are deleted."


def _at_rest(stream: Stream) -> str:
    held = stream.private_parts()
    held += ["the table of users and what each has used"] if stream.unit.to_dict()["type"] == "user" else []
    held += ["the events waiting for the start"] if stream.start_after > 1 else []
    held += ["the operator's tally of unused events, and coarse live counts"]
    return "a saved state holds " + ", ".join(held)
