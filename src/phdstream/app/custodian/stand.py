"""How a stream stands, by its private state: what was dropped, who used up a bound, what is left of ε. **Private.**"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from phdstream.account import AccountFolder
from phdstream.account.report import account_lines
from phdstream.app.config import Config
from phdstream.app.prepare import ledger_of
from phdstream.errors import InputError
from phdstream.privacy import User
from phdstream.streams.durable.stream import DurableStream, durable
from phdstream.streams.guarantee import exactly
from phdstream.streams.intake import PrivateTally

__all__ = ["Stand", "how_it_stands"]


@dataclass(frozen=True)
class Stand:
    """What a custodian may know of a stream besides its releases. **Private.**

    ``counted`` are the events of files by tick, as they were read and before any bound; ``dropped`` are their rows that
    were not counted, by why; ``users`` are how many there are, and how many of them have no more inserts, and no more
    deletes, to give.
    """

    tick: int
    description: str
    tally: PrivateTally
    dropped: Counter[str]
    on_spark: bool
    files: int
    counted: dict[int, int]
    users: tuple[int, int, int] | None
    deletes: bool
    budget: list[tuple[str, str]]
    account: list[str]


def how_it_stands(config: Config) -> Stand:
    """Open a configured stream's state, and return how it stands; nothing is changed, drawn or released."""
    if not config.state.is_dir():
        raise InputError(f"{config.state} is not there: the stream has not begun. phdstream run begins it.")
    with durable(config.state, config.stream()) as stream:
        if not stream.tick:
            raise InputError(f"the stream in {config.state} has taken no tick yet, so there is nothing to report.")
        ledger, counted, dropped = ledger_of(stream), Counter[int](), Counter[str]()
        for record in ledger.records:
            counted.update({tick: number for tick, (number, _) in record.ticks.items() if tick <= stream.tick})
            dropped.update(record.dropped)
        account = [] if config.account is None else account_lines(AccountFolder(config.account.folder).read())
        return Stand(
            stream.tick,
            stream.describe(),
            stream.private_tally,
            dropped,
            config.engine is not None,
            len(ledger.records),
            dict(sorted(counted.items())),
            _users(stream, config),
            stream.deletes,
            _budget(stream, config),
            account,
        )


def _users(stream: DurableStream, config: Config) -> tuple[int, int, int] | None:
    """Return how many users are known, and how many have used up each bound; None if they do not matter here."""
    if not isinstance(config.unit, User) or config.engine is not None:
        return None
    tables = stream.intake().to_arrays()
    inserts, deletes = (np.asarray(tables[f"{name}_used"]) for name in ("insert", "delete"))
    limits = config.unit.inserts, config.unit.deletes
    full = [int((used >= limit).sum()) for used, limit in zip((inserts, deletes), limits, strict=True)]
    return max(inserts.size, deletes.size), full[0], full[1]


def _budget(stream: DurableStream, config: Config) -> list[tuple[str, str]]:
    """Return how ε is spent, and what is left of it."""
    events = stream.intake().budget
    rows = [
        ("Promised", f"ε = {exactly(config.epsilon)} to {config.unit.guarantee}, over the whole stream"),
        ("One insert may spend", f"{float(events.of_insert):.4g}, ever"),
    ]
    if stream.deletes:
        rows.append(("One delete may spend", f"{float(events.of_delete):.4g}, ever"))
    rows.append(
        (
            "Left for this stream",
            "all ticks to come: ε belongs to each unit for the whole stream, so further ticks draw nothing more. "
            "A second stream about the same people does: its ε comes on top.",
        )
    )
    if config.account is None:
        rows.append(
            ("Across streams", "not kept: name an [account] to have all streams about these people drawn on one budget")
        )
    return rows
