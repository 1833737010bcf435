"""Events that a service accepted and that wait in the private folder: `phdstream run` counts them, too. Private."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

from phdstream.app.config import Config
from phdstream.errors import InputError

__all__ = ["Waiting", "waiting_events"]


class Waiting(Protocol):
    """What is used here of `phdstream.service.journal.Journal`, which needs the extra ``service``."""

    def bind(self, stream: str, tick: int) -> None:
        """Forget what is counted up to a tick."""

    def batches(self, tick: int, sign: int) -> list[Any]:
        """Return the events that wait for a tick."""


@contextlib.contextmanager
def waiting_events(config: Config) -> Iterator[Waiting | None]:
    """Give the journal of accepted events, if a service ever took some in; it is locked meanwhile."""
    if not (config.state / "intake.db").exists():
        yield None
        return
    try:
        from phdstream.service.encryption import sealing
        from phdstream.service.journal import Journal
    except ImportError:
        raise InputError(
            f"events that a service accepted wait in {config.state}: install phdstream[service] to go on."
        ) from None
    journal = Journal(config.state, config.input.columns.user is not None, sealing(config.service.key_file))
    try:
        yield journal
    finally:
        journal.close()
