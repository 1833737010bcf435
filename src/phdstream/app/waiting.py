"""Events that a service accepted, or that a source holds: `phdstream run` counts them, too. Private."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Protocol

from phdstream.app.config import Config
from phdstream.errors import InputError

__all__ = ["Waiting", "read_source_to_its_end", "source_notes", "waiting_events"]


class Waiting(Protocol):
    """What is used here of `phdstream.service.journal.Journal`, which needs the extra ``service``."""

    def bind(self, stream: str, tick: int) -> None:
        """Forget what is counted up to a tick."""

    def batches(self, tick: int, sign: int) -> list[Any]:
        """Return the events that wait for a tick."""

    def refused(self) -> dict[str, int]:
        """Return how many rows of a source were left out so far, by reason."""

    @property
    def letters(self) -> int:
        """How long the file of dead letters is."""


@contextlib.contextmanager
def waiting_events(config: Config) -> Iterator[Waiting | None]:
    """Give the journal of accepted events, if a service took some in or there is a source; locked meanwhile."""
    if config.source is None and not (config.state / "intake.db").exists():
        yield None
        return
    try:
        from phdstream.service.encryption import sealing
        from phdstream.service.journal import Journal
    except ImportError:
        raise InputError(
            f"events that a service accepted wait in {config.state}, or [source] is to be read: install "
            "phdstream[service] to go on."
        ) from None
    journal = Journal(config.state, config.input.columns.user is not None, sealing(config.service.key_file))
    try:
        yield journal
    finally:
        journal.close()


def read_source_to_its_end(config: Config, journal: Any, now: datetime) -> None:
    """Read all that the configured source holds into the journal, which is tied to its stream; none, if there is none.

    What does not come to its tick by now is placed as a service would place it, by the broker's stamps.
    """
    if config.source is None:
        return
    from phdstream.service.feeds.choice import consumer_of
    from phdstream.service.reader import Readers
    from phdstream.service.schedule import Schedule

    assert config.clock is not None
    schedule = Schedule(config.clock, config.service, journal.closed, now)
    readers = Readers(1, config.domain, config.clock, config.input.columns, config.input.reading)
    try:
        consumer = consumer_of(config.source, config.state, journal, readers.read, schedule)
        try:
            consumer.catch_up(now)
        finally:
            consumer.stop()
    finally:
        readers.close()


def source_notes(config: Config, journal: Waiting) -> list[str]:
    """Return, for the operator, what of a source was not counted and why. Private."""
    lines = [
        f"since the stream began, {rows} events of the source were left out ({why})"
        for why, rows in sorted(journal.refused().items())
    ]
    if journal.letters:
        lines.append(f"messages that hold no event are in {config.state / 'dead-letters.ndjson'}, with the reasons")
    return lines
