"""Invented input, and what may stand in it more: a unit's rows, or rows that are no events. Two runs are compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from phdstream.audit.finding import Finding, Violation
from phdstream.audit.transcript import Recorder, Replayer, exact_loss
from phdstream.privacy import ExactNoise
from phdstream.streams.intake import Intake
from phdstream.streams.private_codes import PrivateCodes, TickEvents

__all__ = [
    "KINDS",
    "NAMES",
    "NO_EVENT",
    "Admitted",
    "Row",
    "admitted_differ_by",
    "base_rows",
    "compared",
    "is_event",
    "more_rows",
    "ndjson",
    "public_files",
    "recorder",
    "watched",
]

Row = dict[str, Any]
Admitted = dict[int, Counter[tuple[str, int]]]
"""The events that reached the mechanism: by tick, their sign and code."""
NAMES = ("time", "lon", "lat", "sign", "who", "kind")
DAYS = 4
KEY = 12345
_VALUES = ("a", "b", "b", "c")
_BESIDE = ("u3 or so", "U3", "u3 ", "u03")
"""The user that is one more; a careless comparison would take each of these names for another's."""
_FAR, _OLD = "2031-01-01 00:00:00", "1999-01-01 00:00:00"


def base_rows(rng: np.random.Generator, number: int = 60) -> list[Row]:
    """Return rows of a few users, in the order of their time."""
    return sorted((_row(rng, f"u{i % 9}") for i in range(number)), key=lambda row: str(row["time"]))


def _row(rng: np.random.Generator, who: str) -> Row:
    hour, minute = int(rng.integers(0, 24 * DAYS)), int(rng.integers(60))
    lon, lat = (float(x) for x in rng.uniform((0, 40), (10, 50)).round(6))
    if rng.random() < 0.3:  # where cells of all sizes meet
        lon, lat = 5.0, 45.0
    time = f"2024-03-0{1 + hour // 24} {hour % 24:02d}:{minute:02d}:00"
    row: Row = {"time": time, "lon": lon, "lat": lat, "sign": int(rng.choice([1, 1, 1, -1])), "who": who}
    return row | {"kind": str(rng.choice(_VALUES))}


NO_EVENT: dict[str, Row] = {
    "before the first tick": {"time": _OLD}, "after the last tick": {"time": _FAR}, "outside": {"lon": 99.0},
    "without a time": {"time": None}, "of a day that is none": {"time": "2024-03-32 10:00:00"},
    "of an hour that is none": {"time": "2024-03-02 25:00:00"}, "of the last day": {"time": "9999-12-31 23:59:59"},
    "without a place": {"lon": None}, "not a number": {"lat": float("nan")}, "infinite": {"lon": float("inf")},
    "without a user": {"who": None}, "of a user with an endless name": {"who": "x" * 5000},
    "with a sign that is none": {"sign": 7},
    "without a value": {"kind": None}, "of a value that is not listed": {"kind": "d"},
}  # fmt: skip
OF_USERS = ("without a user", "of a user with an endless name")
OF_VALUES = ("without a value", "of a value that is not listed")
"""No events only where users, or attributes, matter: else nobody looks at them in a row."""
KINDS = ("a unit", "a unit", "a unit at once", "a unit", *NO_EVENT)
"""Taken in turn, as formats, methods, units and attributes are: their number shares no factor with those of these."""


def is_event(kind: str, users: bool, attributes: bool) -> bool:
    """Whether what is one more may be admitted."""
    ignored = (kind in OF_USERS and not users) or (kind in OF_VALUES and not attributes)
    return kind not in NO_EVENT or ignored


def more_rows(kind: str, rng: np.random.Generator, events: int) -> list[Row]:
    """Return the rows that one neighbour has more; of a unit so many events, which are more than are to be counted."""
    if kind in NO_EVENT:
        return [_row(rng, _BESIDE[0]) | {"sign": 1} | NO_EVENT[kind]]
    at_once = {"time": f"2024-03-0{rng.integers(1, DAYS + 1)} 12:00:00"} if kind == "a unit at once" else {}
    who = str(rng.choice(_BESIDE))
    return [_row(rng, who) | at_once for _ in range(events)]


@contextmanager
def watched(noise: Recorder) -> Iterator[Admitted]:
    """Let every stream that is made or loaded in this block use the noise; yields what is admitted."""
    from phdstream.streams import stream
    from phdstream.streams.paper import stream as paper
    from phdstream.streams.tracking import stream as tracking

    admitted: Admitted = {}
    admit = Intake.admit

    def watching(self: Intake, *args: Any) -> TickEvents:
        events = admit(self, *args)
        tick = len(admitted) + 1
        admitted[tick] = Counter(
            (sign, code) for sign, kind in zip("+-", events, strict=True) for code in _codes(kind).tolist()
        )
        return events

    with ExitStack() as patches:
        for module in (paper, tracking):
            patches.enter_context(patch.object(module, "checked_noise", lambda asked: noise))
        patches.enter_context(patch.object(stream, "noise_from_dict", lambda spec: noise))
        patches.enter_context(patch.object(Intake, "admit", watching))
        patches.enter_context(patch("secrets.token_hex", lambda size=32: "0" * (2 * size)))
        patches.enter_context(patch("os.fsync", lambda file: None))  # nothing of it is to outlive the audit
        yield admitted


def _codes(events: PrivateCodes) -> Any:
    arrays = events.to_arrays()
    return np.concatenate([arrays["codes"], np.repeat(arrays["finest"], arrays["numbers"])])


def compared(finding: Finding, where: str, first: Recorder, second: Replayer, limit: float, total_bits: int) -> None:
    """Compare what two runs asked of their noise, and add up the loss."""
    second.finish()
    loss = exact_loss(first.steps, second.steps, first.rule, total_bits)
    finding.saw_loss(loss.largest, limit, where)


def recorder(rule: Any) -> Recorder:
    """Return production noise that is written down, with a key that is known."""
    made = Recorder(ExactNoise(), rule)
    made.key = lambda: KEY  # type: ignore[method-assign]
    return made


def admitted_differ_by(without: Admitted, with_it: Admitted, most: tuple[int, int], where: str) -> None:
    """Check that one neighbour's events are the other's and at most so many inserts and deletes more."""
    lost = sum((without[tick] - with_it.get(tick, Counter())).total() for tick in without)
    gained = Counter[str]()
    for tick, events in with_it.items():
        for (sign, _), number in (events - without.get(tick, Counter())).items():
            gained[sign] += number
    if lost:
        raise Violation(f"{where}: events of others are judged otherwise for it")
    if gained["+"] > most[0] or gained["-"] > most[1]:
        raise Violation(f"{where}: more events are admitted for it than it may have")


def public_files(folder: Path) -> dict[str, bytes]:
    """Return the content of all files below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def ndjson(rows: list[Row]) -> str:
    """Return rows as newline-delimited JSON."""
    return "".join(json.dumps(row) + "\n" for row in rows)
