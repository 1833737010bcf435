"""Deliveries that differ by one unit, through the service's intake, journal and publisher; and its metrics."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from phdstream.app.audit.neighbours import (
    KEY,
    KINDS,
    Admitted,
    Row,
    admitted_differ_by,
    base_rows,
    compared,
    is_event,
    more_rows,
    ndjson,
    public_files,
    recorder,
    watched,
)
from phdstream.app.audit.pipeline import BOX, CONFIG, ROWS, USERS, described
from phdstream.app.config import load_config
from phdstream.app.serve import source_of
from phdstream.audit.finding import Effort, Finding, Progress, Violation, unfit
from phdstream.audit.transcript import Recorder, Replayer
from phdstream.errors import PhdstreamError

__all__ = ["DeliveriesCheck"]

_START = datetime(2024, 3, 1, tzinfo=UTC).timestamp()
_NEEDED = ("apsw", "cryptography", "msgspec", "prometheus_client")
_DAY = 86_400


class DeliveriesCheck:
    """Requests in any order and batching, some sent twice, some too late; released by the service's publisher."""

    name = "deliveries"
    shows = (
        "Through the service, deliveries with a unit more admit the same events and that unit's; one that is sent "
        "again counts once; given the same noisy values, releases and metrics are the same to the byte."
    )

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Try random deliveries."""
        if not all(map(find_spec, _NEEDED)):
            return unfit(self, "needs the extra `service`: pip install 'phdstream[service]'")
        finding = Finding(self.name, self.shows, excess_found=0.0, largest_loss=0.0)
        for seed in effort.seeds(finding, 30.0, 300, progress):
            with tempfile.TemporaryDirectory() as folder:
                _case(finding, seed, Path(folder))
        return finding


def _case(finding: Finding, seed: int, folder: Path) -> None:
    rng = np.random.default_rng((seed, 8))
    kind, users, attributes = KINDS[seed % len(KINDS)], seed % 4 < 2, seed % 5 < 2
    rows, where = [_zoned(row) for row in base_rows(rng, 40)], f"case {seed}, one more: {kind}"
    more = [_zoned(row) for row in more_rows(kind, rng, 5 if users else 1)]
    files, until = 'files = "*.csv"\n', "start = 2024-03-01\nend = 2024-03-05"
    text = CONFIG.format(
        ending="csv", method=("tracking", "phdstream")[seed % 2], unit=USERS if users else '"event"',
        domain=ROWS if attributes else BOX, input='sign = "sign"' + ('\nuser = "who"' if users else ""),
    )  # fmt: skip
    text = text.replace(files, "").replace(until, "start = 2024-03-01T00:00:00Z")
    text += '[service]\npublic = true\nreaders = 1\nahead = "5d"\nlate = "refuse"\n'
    try:
        stream = _config(folder / "z", text).stream()
        first = recorder(getattr(stream, "rule", None))
        without = _served(folder / "a", text, [*_batches(rows, rng)], first)
        second = Replayer(first.steps, first.rule, KEY)
        together = _batches([*rows, *more], rng) if rng.random() < 0.5 else [*_batches(rows, rng), *_batches(more, rng)]
        after = _served(folder / "b", text, together, second)
        event = is_event(kind, users, attributes)
        most = (0, 0) if not event else (2, 1) if users else (1, 1)
        admitted_differ_by(without[0], after[0], most, where)
        limit = stream.budget.epsilon if event else 0.0
        compared(finding, where, first, second, limit, stream.domain.total_bits)
        for what, one, other in zip(("releases", "metrics"), without[1:], after[1:], strict=True):
            if one != other:
                raise Violation(f"{where}: {what} depend on private data beyond the noisy values")
    except PhdstreamError as error:
        finding.violated(described(where, error))


def _zoned(row: Row) -> Row:
    return row | {"time": None if row["time"] is None else row["time"].replace(" ", "T") + "Z"}


def _batches(rows: list[Row], rng: np.random.Generator) -> list[list[Row]]:
    """Return rows in some order, in batches of some sizes."""
    order = rng.permutation(len(rows))
    cuts = np.sort(rng.integers(0, len(rows) + 1, int(rng.integers(1, 5))))
    return [[rows[i] for i in part] for part in np.split(order, cuts) if part.size]


def _config(folder: Path, text: str) -> Any:
    folder.mkdir(exist_ok=True)
    (folder / "stream.toml").write_text(text)
    return load_config(folder / "stream.toml")


def _served(
    folder: Path, text: str, deliveries: list[list[Row]], noise: Recorder
) -> tuple[Admitted, dict[str, bytes], bytes]:
    """Serve a stream by hand: all is sent on its first day, each second delivery twice; then let time pass."""
    from phdstream.service import stream_service
    from phdstream.service.bodies import BodyReader
    from phdstream.service.schedule import SteadyClock

    seconds, config = [60.0], _config(folder, text)

    class InProcess:
        """Reads here; the more it reads, the later it is: a request counts from when it was received."""

        def __init__(self, number: int, *about: Any) -> None:
            self._reader = BodyReader(*about)

        def read(self, kind: str, content: bytes) -> Any:
            seconds[0] += 25.0 * len(content)
            return self._reader.read(kind, content)

        def close(self) -> None:
            pass

    clock = SteadyClock(lambda: _START + seconds[0], lambda: 1000 + seconds[0])
    with watched(noise) as admitted, patch.object(stream_service, "Readers", InProcess):
        service = stream_service.StreamService(source_of(config, folder / "stream.toml"), clock)
        try:
            asyncio.run(_deliver_all(service, deliveries))
            asyncio.run(_deliver_all(service, deliveries[::2], step=2))
            for day in (1, 2, 3, 4):
                seconds[0] = max(seconds[0], day * _DAY + 60.0)
                service.publisher.release_due()
                if day == 2:  # too late: its tick is released
                    asyncio.run(_deliver(service, "late", ndjson([_LATE])))
            if any(len(kind) for tick in (1, 2, 3, 4) for kind in service._journal.events(tick)):
                raise Violation("events that were counted are still in the journal")
            return dict(admitted), _content(config.releases), _metrics(service)
        finally:
            service.stop()


_LATE: Row = {"time": "2024-03-01T05:00:00Z", "lon": 5.0, "lat": 45.0, "sign": 1, "who": "late", "kind": "a"}


async def _deliver_all(service: Any, deliveries: list[list[Row]], step: int = 1) -> None:
    """Deliver all at once; ``step`` says which of the first time these are again."""
    await asyncio.gather(
        *(_deliver(service, f"key {number * step}", ndjson(rows)) for number, rows in enumerate(deliveries))
    )


async def _deliver(service: Any, key: str, content: str) -> None:
    from phdstream.service.bodies import NDJSON
    from phdstream.service.intake import UnreadableError

    try:
        with service.intake.open(key) as ticket:
            await service.intake.deliver(ticket, NDJSON, bytearray(content.encode()))
    except UnreadableError:
        pass  # not one row of it is an event: the sender is told, and nothing is stored


def _content(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in public_files(folder).items() if name != "errata.json"}


def _metrics(service: Any) -> bytes:
    from prometheus_client import generate_latest

    from phdstream.service.api.system import _registry

    return bytes(generate_latest(_registry(service)))
