"""Replay: a neighbour is handed what a stream released; all questions must be the same, and the loss is added up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from phdstream.audit.cases import Case, Make, Tick, configured_case, random_case, unrelated_ticks
from phdstream.audit.finding import Effort, Finding, Progress, Violation
from phdstream.audit.forcing import WildNoise
from phdstream.audit.transcript import Recorder, Replayer, Step, exact_loss
from phdstream.errors import InputError, PhdstreamError
from phdstream.privacy import ExactNoise, SplitRule
from phdstream.streams import code_counts, private_codes
from phdstream.streams.state import decode_state, encode_state
from phdstream.streams.stream import Stream

__all__ = ["ReplayCheck", "played"]

_KEY = 12345
_LARGEST_LISTED = 16
"""Bits of codes: of larger domains the finest nodes are not listed here, for it takes too long."""


class ReplayCheck:
    """Random neighbours on random streams, or on a configured one: `Case` says what is drawn."""

    name = "replay"
    shows = (
        "A neighbour that is handed the same released values asks the same questions, releases the same bytes, and the "
        "exact log-ratio of everything released, intermediate counts included, stays within ε."
    )

    def __init__(self, make: Make | None = None) -> None:
        self._make = make
        if make is not None:
            self.name, self.shows = "replay of your stream", f"The same on the configured stream. {self.shows}"

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Try random cases."""
        finding = Finding(self.name, self.shows, excess_found=0.0, largest_loss=0.0)
        for seed in effort.seeds(finding, 60.0, 1500, progress):
            case = random_case(seed) if self._make is None else configured_case(self._make, seed)
            try:
                with _as_if_many(seed % 3 == 0, _bits(case.make)):
                    _check(case, seed, finding)
            except Violation as error:
                finding.violated(f"case {seed}, {case.name}: {error}")
            except PhdstreamError as error:
                finding.violated(f"case {seed}, {case.name}: refused by the product itself ({type(error).__name__})")
        return finding


def _check(case: Case, seed: int, finding: Finding) -> None:
    here, there = (case.more, case.ticks) if seed % 2 else (case.ticks, case.more)
    source = WildNoise(seed) if case.wild else ExactNoise()
    rule = getattr(case.make(), "rule", None)
    recorder = Recorder(source, rule)
    released = played(case.make(), here, recorder, case.resume_at)
    replayer = Replayer(recorder.steps, rule, _KEY)
    again = played(case.make(), there, replayer, case.resume_at)
    replayer.finish()
    _same_releases(released, again)
    domain_bits = _bits(case.make)
    loss = exact_loss(recorder.steps, replayer.steps, rule, domain_bits)
    finding.saw_loss(loss.largest, case.limit, f"case {seed}, {case.name}")
    if case.only_deletes and any(_differ(a, b) for a, b in zip(recorder.steps, replayer.steps, strict=True)):
        finding.violated(f"case {seed}, {case.name}: a delete changes a split test, which it has not paid for")
    _asks_the_same(case, recorder, rule, (2, 90)[seed // 2 % 2], seed)
    _refuses_deletes(case)


def _refuses_deletes(case: Case) -> None:
    """Where deletes were declared not to be, inserts spend all of ε: a delete must not come in."""
    stream = case.make()
    one = unrelated_ticks(case.make, 1, 0, 3)[0]
    if not stream.deletes and len(one.points[1]):
        try:
            stream.update(None, one.points[1], None, one.users[1])
        except InputError:
            return
        raise Violation("a stream without deletes takes them, for which it has no budget")


@contextmanager
def _as_if_many(many: bool, total_bits: int) -> Iterator[None]:
    """Let few events be kept and counted as millions are: by their finest nodes, and by leading bits."""
    with ExitStack() as patches:
        if many:
            patches.enter_context(patch.object(code_counts, "_FEW", 4))
        if many and total_bits <= _LARGEST_LISTED:
            patches.enter_context(patch.object(private_codes, "_MANY", 4))
        yield


def _bits(make: Make) -> int:
    return make().domain.total_bits


def _differ(one: Step, other: Step) -> bool:
    return one.kind == "split" and not np.array_equal(one.values, other.values)


def _asks_the_same(case: Case, recorder: Recorder, rule: SplitRule | None, number: int, seed: int) -> None:
    """Another stream altogether: one event seldom tips a threshold, so neighbours would hardly show a true count."""
    replayer = Replayer(recorder.steps, rule, _KEY)
    played(case.make(), unrelated_ticks(case.make, len(case.ticks), seed, number), replayer, case.resume_at)
    replayer.finish()


def played(stream: Stream, ticks: list[Tick], noise: Recorder, resume_at: set[int]) -> list[dict[str, Any]]:
    """Return what a stream releases, tick by tick, as plain data; it is saved and loaded on the way."""
    stream.noise, stream._key = noise, _KEY
    released = []
    for number, tick in enumerate(ticks, 1):
        release = tick.update(stream)
        released.append(release.to_arrays() | {"about": np.array(str(release.metadata) + stream.describe())})
        if number in resume_at:
            content = encode_state(*stream.to_state())
            stream = type(stream).from_state(*decode_state(content, Path("state")))
            stream.noise = noise
    return released


def _same_releases(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> None:
    for tick, (a, b) in enumerate(zip(one, two, strict=True), 1):
        for name, array in a.items():
            if not np.array_equal(array, b[name], equal_nan=array.dtype.kind == "f"):
                raise Violation(f"what tick {tick} releases besides noisy counts depends on private data ({name})")
