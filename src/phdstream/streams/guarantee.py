"""What a stream promises, as plain data for machines and in plain words for people. Public."""

from __future__ import annotations

from typing import Any

import numpy as np

from phdstream.domains.resolution import metres_wide
from phdstream.privacy.proved import vouched_for
from phdstream.streams.method import Method
from phdstream.streams.setting import Setting
from phdstream.version import __version__

__all__ = ["SIMULATED", "describe", "exactly", "facts", "metadata", "parameters"]

SIMULATED = "simulated, not private"


def metadata(setting: Setting, method: Method) -> dict[str, Any]:
    """Return what every release states: unit, ε, domain, method, version, and what it may claim."""
    return {
        "product": "phdstream",
        "version": __version__,
        "privacy": _claim(setting, method),
        "epsilon": method.budget.epsilon,
        "unit": setting.unit.to_dict(),
        "domain": setting.summary,
        "method": method.name,
        "window": setting.window,
    } | method.metadata()


def _claim(setting: Setting, method: Method) -> str:
    if not method.noise.private:
        return SIMULATED
    promise = (
        f"{exactly(method.budget.epsilon)}-differentially private for {setting.unit.guarantee}, over the whole stream"
    )
    return "; ".join([promise, *_unproved(setting, method)])


def _unproved(setting: Setting, method: Method) -> list[str]:
    """Return what the promise rests on that is not proved here, and who vouches for it."""
    parts = [("source of noise", method.noise), *setting.parts]
    said = [*(vouched_for(what, part) for what, part in parts), *method.unproved()]
    return [each for each in said if each]


def exactly(epsilon: float) -> str:
    """Return ε as it is: a promise is not rounded, and rounding down would promise too much.

    >>> exactly(1.0), exactly(0.1234567)
    ('1', '0.1234567')
    """
    return f"{epsilon:g}" if float(f"{epsilon:g}") == epsilon else repr(float(epsilon))


def parameters(setting: Setting, method: Method) -> dict[str, Any]:
    """Return all that fixes a stream before it sees data; two streams that agree here are the same stream."""
    fixed = {"epsilon": method.budget.epsilon, "method": method.name, "private_noise": method.noise.private}
    return setting.to_dict() | fixed | method.options()


def describe(setting: Setting, method: Method, kind: str) -> str:
    """Return the guarantee, the budget and the noise in plain words; ``kind`` is the name of the stream's class."""
    lines = [
        f"{kind} on {setting.domain!r}",
        f"Promise: {_claim(setting, method)}.",
        *_meaning(setting, method),
        f"Records: {_lifetime(setting)}",
        *_resolution(setting),
        *_attributes(setting),
        *method.describe(),
        f"Private at rest: {_at_rest(setting, method)}.",
    ]
    return "\n".join(lines)


def facts(setting: Setting, method: Method) -> list[tuple[str, str]]:
    """Return what a stream is and what it promises, by name, in short."""
    metres = setting.domain.cell_metres
    found = [("Where", repr(setting.domain)), ("Promise", _claim(setting, method)), ("Records", _lifetime(setting))]
    return found if metres is None else [*found, ("Finest cells", f"about {metres_wide(metres)} wide")]


def _meaning(setting: Setting, method: Method) -> list[str]:
    if not method.noise.private:
        return ["  The noise is seeded, so it can be subtracted: never publish what this stream says of real people."]
    epsilon, begin = method.budget.epsilon, "If that holds, whatever" if _unproved(setting, method) else "Whatever"
    return [
        f"  {begin} is published, ever, is at most e^{exactly(epsilon)} = {np.exp(epsilon):.3g} times as likely with "
        "one\n  such unit in the data as without it, or the reverse. Smaller ε is more private.",
    ]


def _resolution(setting: Setting) -> list[str]:
    metres = setting.domain.cell_metres
    return [] if metres is None else [f"Resolution: the finest cells are about {metres_wide(metres)} wide."]


def _attributes(setting: Setting) -> list[str]:
    each = ", ".join(f"{attribute.name} ({len(attribute)} values)" for attribute in setting.domain.attributes)
    return [f"Attributes: {each}. A row with any other value counts nowhere."] if each else []


def _lifetime(setting: Setting) -> str:
    if setting.window:
        ticks = "1 tick" if setting.window == 1 else f"{setting.window} ticks"
        return f"each lives {ticks} and then expires, at no privacy cost."
    return "they stay for ever (insert-only)." if setting.insert_only else "they stay until they are deleted."


def _at_rest(setting: Setting, method: Method) -> str:
    private = method.private_parts()
    private += ["the table of users and what each has used"] if setting.unit.to_dict()["type"] == "user" else []
    private += ["the events waiting for the start"] if setting.start_after > 1 else []
    private += ["the operator's tally of unused events, and coarse live counts"]
    return "a saved state holds " + ", ".join(private)
