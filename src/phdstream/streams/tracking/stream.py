"""`TrackingStream`: tracking as a stream."""

from __future__ import annotations

from typing import Any

from phdstream.domains import Domain
from phdstream.errors import InputError, shown
from phdstream.priors import Prior
from phdstream.privacy import Budget, Noise, Unit
from phdstream.streams.setting import Setting, checked_noise
from phdstream.streams.stream import Stream
from phdstream.streams.tracking.beginning import Beginning
from phdstream.streams.tracking.method import NAME, TrackingMethod
from phdstream.streams.tracking.parameters import TrackingParameters

__all__ = ["TrackingStream"]


class TrackingStream(Stream):
    """A private synthetic stream by tracking: the same interface and promise as `PHDStream`, and less error.

    Parameters
    ----------
    domain: where points can be; fixed before any data is seen.
    epsilon, unit: the promise: ε-differential privacy for each `Event`, `Record` or `User`, over the whole stream.
    window: records live this many ticks and then expire, at no privacy cost. No deletes are taken.
    insert_only: declares that there are no deletes, which makes a `Record` as cheap as an `Event`.
    start_after: t0, the tick of the first release; everything up to it is counted as one tick.
    max_nodes: nodes remembered; beyond it those that hold the fewest points are forgotten.
    prior: what is public of where events are (`phdstream.Prior`): the stream starts from it, and learns from its own
        counts how far to believe it. No privacy cost, if it is public.
    parameters: the numbers the method was tuned by; leave them out unless you study the method itself.
    noise: leave it out for exact noise; `Simulation` (seed) is for experiments and marks every release.

    >>> import phdstream as phd
    >>> stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), epsilon=1.0, unit=phd.Event())
    >>> release = stream.update(inserts=[(0.2, 0.7), (0.2, 0.8)])
    >>> release = stream.update(inserts=[(0.9, 0.1)], deletes=[(0.2, 0.7)])
    >>> release.tick
    2
    """

    method = NAME

    def __init__(
        self,
        domain: Domain,
        epsilon: float,
        unit: Unit,
        *,
        window: int | None = None,
        insert_only: bool = False,
        start_after: int = 1,
        max_nodes: int = 1_000_000,
        prior: Prior | dict[str, Any] | None = None,
        parameters: TrackingParameters | dict[str, Any] | None = None,
        noise: Noise | None = None,
    ) -> None:
        setting, source = Setting(domain, unit, window, insert_only, start_after, max_nodes), checked_noise(noise)
        budget = Budget.per_event(epsilon, unit, deletes=setting.deletes)
        begins = Beginning.of(prior, setting, source)
        super().__init__(setting, TrackingMethod(setting, budget, source, _parameters(parameters), begins))


def _parameters(given: TrackingParameters | dict[str, Any] | None) -> TrackingParameters:
    """Return the parameters that were asked for; as plain data they come from a saved state."""
    if given is None or isinstance(given, dict):
        return TrackingParameters.from_dict(given or {})
    if not isinstance(given, TrackingParameters):
        raise InputError(f"parameters must be TrackingParameters(...), or be left out, not {shown(given)}.")
    return given
