"""What was found in the input, in words for the operator. **Private: exact numbers, never to be published.**"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from phdstream.app.config import Config
from phdstream.app.prepare import Prepared
from phdstream.domains import ROOT
from phdstream.domains.product import DayOfWeek, TimeOfDay
from phdstream.streams.durable.stream import DurableStream

__all__ = ["coordinate_hints", "operator_notes", "told_by_ticks", "unusable"]

_MOST, _FEW = 0.5, 0.001
"""The part of the rows that must be readable and inside for a first run to begin; and of any tick at all."""


def unusable(prepared: Prepared, config: Config) -> str:
    """Return why a first run should not begin: most rows cannot be used, or there are none. Nothing if it may.

    Rows of other times do not count against it, as long as there are some of these: a part of a long file may be meant.
    The answer names no number. That it stops at all tells whoever sees it stop that most rows are unusable
    (SECURITY.md says what that reveals).
    """
    tally = prepared.tally
    if not tally.rows:
        return "the input has no row at all."
    unread = sum(tally.bad.values())
    if tally.placed < _MOST * tally.rows and unread > tally.outside:
        return f"most rows cannot be used: they cannot be read ({tally.bad.most_common(1)[0][0]})."
    if tally.placed < _MOST * tally.rows:
        return " ".join(["most rows cannot be used: they are outside the domain.", *coordinate_hints(prepared, config)])
    if tally.usable + tally.early < _FEW * tally.placed:
        return "the rows are of other times: before the first tick, or after the last. Is the year of [ticks] right?"
    return ""


def coordinate_hints(prepared: Prepared, config: Config) -> list[str]:
    """Return what may be wrong with the coordinates of rows outside the domain."""
    tally, hints = prepared.tally, []
    if tally.tried and tally.swapped > tally.tried / 2:
        hints.append(
            "Most of those outside would be inside with their two coordinates swapped: are longitude and latitude in "
            "the right order?"
        )
    outside = prepared.gathered.sample[False]
    if outside and not hints:
        hints += _scale_hint(max(float(abs(part).max(initial=0.0)) for part in outside), config)
    return hints


def _scale_hint(largest: float, config: Config) -> list[str]:
    corner = float(np.abs(config.domain.location.bounds(np.array([ROOT]))).max())
    if 0 < corner <= 360 < largest < float("inf"):
        return ["The coordinates seem to be in metres or feet, and the domain in degrees: convert one of them."]
    if 0 < largest <= 360 < corner:
        return ["The coordinates seem to be in degrees, and the domain in metres or feet: convert one of them."]
    return []


def told_by_ticks(config: Config) -> list[str]:
    """Return which attributes say what a row's tick says already; such attributes cost accuracy, and tell little."""
    day, lines = timedelta(days=1), list[str]()
    for attribute in config.domain.attributes:
        part = day if isinstance(attribute, DayOfWeek) else day / len(attribute)
        timed = isinstance(attribute, DayOfWeek | TimeOfDay) and attribute.column == config.input.columns.time
        if timed and config.clock is not None and config.clock.every <= part:
            lines.append(
                f"The ticks are so short that each says its {attribute.name}: leave '{attribute.name}' out and count "
                "by tick, or take longer ticks. With few points a release would be late in saying it."
            )
    return lines


def operator_notes(prepared: Prepared, stream: DurableStream, config: Config) -> list[str]:
    """Return, of the rows read by this run, how many were not counted and why; and what seems odd."""
    tally = prepared.tally
    counts: dict[str, Any] = {
        "rows are of ticks that an earlier run released: not counted": tally.late,
        "rows are before the first tick: not counted": tally.before,
        "rows are after the last tick: not counted, unless [ticks] end is moved": tally.after,
        "rows are of ticks that are not over yet: a later run counts them, if they are still in the input": tally.early,
        f"rows are outside the domain ({_outside(config)}): not counted": tally.outside,
    }
    lines = [f"{number} rows could not be read ({why}): not counted" for why, number in tally.bad.items()]
    lines += [f"{number} {what}" for what, number in counts.items() if number]
    lines += coordinate_hints(prepared, config)
    dropped = stream.private_tally
    if dropped.over_bound:
        lines.append(f"since the stream began, {dropped.over_bound} events were beyond their user's bound: not counted")
    if dropped.unmatched_deletes:
        lines.append(
            f"since the stream began, at least {dropped.unmatched_deletes} deletes came where nothing was left to "
            "delete: counted as they came. Are inserts missing, or do coordinates of inserts and deletes differ?"
        )
    if config.source is not None and not config.input.patterns:
        return lines
    if not tally.rows and not prepared.skipped:
        lines.append("the input held no row")
    elif not tally.usable and prepared.last >= prepared.first:
        lines.append("the input held no event for any of these ticks: are the new files in place?")
    return lines


def _outside(config: Config) -> str:
    """Return what makes an event fall outside."""
    snap = config.domain.location.summary().get("snap")
    why = "another place" if snap is None else f"farther than {snap:g} from any line"
    return f"{why}, or a value that is in no list" if config.domain.attributes else why
