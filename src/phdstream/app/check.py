"""`phdstream check`: look before you spend. Reads everything, spends nothing. **What it says is private.**"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import BytesIO
from pathlib import Path

from phdstream.app.config import Config
from phdstream.app.findings import coordinate_hints, told_by_ticks, unusable
from phdstream.app.prepare import Prepared, prepare
from phdstream.domains.resolution import metres_wide
from phdstream.io.sinks.writers import encode_cells, encode_points
from phdstream.privacy import User
from phdstream.release import Release
from phdstream.streams.durable.stream import DurableStream, durable

__all__ = ["CheckReport", "check", "private_picture"]

_LINES = 31
"""No more lines than this say how many events each tick has; more ticks are grouped."""
_BAR = 30


@dataclass
class CheckReport:
    """What was found. **Private: exact numbers, for the operator only.** ``ready`` says whether a run would begin."""

    ready: bool
    verdict: str
    lines: list[str] = field(default_factory=list)
    picture: Path | None = None


def check(
    config: Config,
    *,
    now: datetime | None = None,
    until: datetime | None = None,
    picture: Path | None = None,
    progress: Callable[[int, int | None], None] = lambda done, total: None,
) -> CheckReport:
    """Read all input of a configuration, and say what a run would do with it. Nothing is spent, kept or released.

    ``picture`` is where to draw the points on the domain; that needs the extra ``plot``.
    """
    started, now = time.monotonic(), now or datetime.now().astimezone()
    with durable(config.state, config.stream()) as stream:
        prepared = prepare(config, stream, now, until, progress, here=True)
        try:
            why = "" if stream.tick else unusable(prepared, config)
            report = CheckReport(not why, why or _ready(prepared, config))
            report.lines += _rows(prepared, config) + _ticks(prepared, config)
            bounded = _over_bound(prepared, stream) if isinstance(config.unit, User) else []
            report.lines += bounded + _costs(prepared, config, time.monotonic() - started)
            report.lines += prepared.notes + told_by_ticks(config)
        finally:
            prepared.gathered.close()
    if picture is not None:
        from phdstream.app.check_picture import draw_points

        report.picture = draw_points(config.domain.location, prepared.gathered.sample, picture)
    return report


def _ready(prepared: Prepared, config: Config) -> str:
    if prepared.last < prepared.first:
        return "Nothing to release yet: no tick is over that was not released."
    return f"Ready: a run would take ticks {prepared.first} to {prepared.last}."


def _rows(prepared: Prepared, config: Config) -> list[str]:
    """Return what becomes of the rows."""
    tally = prepared.tally
    crs, metres = config.domain.crs or "none stated: coordinates are taken as they are", config.domain.cell_metres
    lines = [
        f"coordinate system: {crs}",
        f"depth: {config.domain.depth}"
        + ("" if metres is None else f", finest cells about {metres_wide(metres)} wide"),
        f"files: {len(prepared.ledger.records)} known or read now, {prepared.skipped} of them read before and done",
        f"rows read: {tally.rows:,}",
        f"  usable now: {tally.usable:,}",
    ]
    others = {
        "of ticks not over yet": tally.early,
        "of ticks released before": tally.late,
        "before the first tick": tally.before,
        "after the last tick": tally.after,
        "outside the domain": tally.outside,
    }
    lines += [f"  {what}: {number:,}" for what, number in others.items() if number]
    lines += [f"  unreadable: {number:,} ({why})" for why, number in tally.bad.most_common()]
    return lines + [f"  {hint}" for hint in coordinate_hints(prepared, config)]


def _ticks(prepared: Prepared, config: Config) -> list[str]:
    """Return how many events each tick has, with a bar each; ticks without any too."""
    number = prepared.last - prepared.first + 1
    if number < 1:
        return []
    size = -(-number // _LINES)
    starts = range(prepared.first, prepared.last + 1, size)
    ends = [min(start + size - 1, prepared.last) for start in starts]
    counts = [sum(prepared.gathered.per_tick[t] for t in range(a, b + 1)) for a, b in zip(starts, ends, strict=True)]
    most, wide = max(*counts, 1), len(f"{max(*counts, 1):,}")
    lines = ["events per tick:" if size == 1 else f"events per {size} ticks:"]
    for start, end, count in zip(starts, ends, counts, strict=True):
        name = f"{start}" if size == 1 else f"{start}-{end}"
        when = config.clock.end_of(start - 1) if config.clock else None
        bar = "█" * round(_BAR * count / most) or ("·" if count else "")
        begins = "" if when is None else when.isoformat(" ")[:16]
        lines.append(f"  {name:>11} {begins:>16} {count:>{wide},} {bar}".rstrip())
    return lines


def _over_bound(prepared: Prepared, stream: DurableStream) -> list[str]:
    """Return how many events are beyond their users' bounds, counting from the bounds as they stand now."""
    intake = stream.intake()
    before = intake.tally.over_bound
    for number in range(prepared.first, prepared.last + 1):
        intake.admit(*prepared.gathered.tick(number, keep=True), None, None)
    return [f"beyond their user's bound, so not counted: {intake.tally.over_bound - before:,}"]


def _costs(prepared: Prepared, config: Config, seconds: float) -> list[str]:
    """Return what time and memory to expect: reading as it was just now, and the largest tick tried in a simulation."""
    ticks = prepared.last - prepared.first + 1
    if ticks < 1:
        return []
    largest = max(range(prepared.first, prepared.last + 1), key=lambda tick: prepared.gathered.per_tick[tick])
    trial = replace(config, seed=0).stream()
    started = time.monotonic()
    release: Release = trial.update(*prepared.gathered.tick(largest, keep=True))
    for encode in () if release.held else (encode_cells, encode_points):
        encode(release, config.format)(BytesIO())
    each = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 2**20
    return [f"to expect: about {_span(seconds + ticks * each)}, and {peak:,.0f} MB of memory"]


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def private_picture(config: Path) -> Path:
    """Return where the picture of a configuration goes unless told otherwise: beside it, named as what it is."""
    return config.with_name(f"{config.stem}-check-PRIVATE.png")
