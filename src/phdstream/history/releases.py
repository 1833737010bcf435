"""`read_releases`: a folder of releases as a sequence, read tick by tick as they are asked for. Public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np

from phdstream.domains import Domain
from phdstream.errors import InputError, StateError, shown
from phdstream.history.areas import names_of, question
from phdstream.history.over_time import OverTime, changes_between, each_side
from phdstream.history.schedule import Schedule
from phdstream.history.tables import area_table, value_table
from phdstream.io.archive import Archive, open_archive
from phdstream.io.sources.clock import parse_duration
from phdstream.page.notebook import ExplorePage, explored_ticks
from phdstream.release import Release
from phdstream.release.plots import draw_lines, draw_ticks
from phdstream.release.shown import card_html

__all__ = ["Releases", "read_releases"]

Where: TypeAlias = Mapping[str, Any] | None
_MOST_LINES = 12
_HINT = (
    "[-1] is the last; .counts(areas), .changes(areas) and .rates(areas) are tables; .plot() and .explore() draw them"
)


def read_releases(folder: str | Path) -> Releases:
    """Return all releases of a folder that `phdstream run` or `serve` wrote; nothing is read but its manifest.

    >>> import phdstream as phd
    >>> phd.read_releases("nowhere")
    Traceback (most recent call last):
    phdstream.errors.InputError: nowhere is no folder of releases: it has no manifest.json.
    """
    archive = open_archive(Path(folder).expanduser())
    return Releases(archive, sorted(archive.ticks(1, archive.last_tick)))


class Releases(Sequence[Release]):
    """The releases of some ticks, in order: ``releases[-1]`` is the last, ``releases[-30:]`` are the last 30.

    ``counts``, ``changes`` and ``rates`` are tables with a row for each area and tick: ``tick``, ``start`` and ``end``
    (of the tick, if ticks go by time), then the answers. On a map ``areas`` are what `Release.count_in` takes, on other
    domains what `Release.count` takes; without any, everything. Of a `Product` ``where`` says which values count, and
    ``table`` counts by values. What kind of table comes back is decided as
    everywhere: a GeoDataFrame if one came in, Arrow otherwise, or what ``to`` says.
    """

    def __init__(self, archive: Archive, ticks: list[int]) -> None:
        self._archive, self.ticks = archive, ticks

    @property
    def domain(self) -> Domain:
        """Where points can be."""
        return self._archive.domain

    @property
    def manifest(self) -> dict[str, Any]:
        """What the folder says of itself: unit, ε, method, schedule."""
        return self._archive.manifest() or {}

    @property
    def privacy(self) -> str:
        """What the releases may claim, in words."""
        return str(self.manifest.get("privacy", ""))

    def at(self, tick: int) -> Release:
        """Return the release of a tick, by its number."""
        if tick not in self.ticks:
            raise StateError(f"tick {shown(tick)} is not among these releases{self._range()}.")
        return self._archive.release(tick)

    @overload
    def __getitem__(self, at: int) -> Release: ...
    @overload
    def __getitem__(self, at: slice) -> Releases: ...
    def __getitem__(self, at: int | slice) -> Release | Releases:
        if isinstance(at, slice):
            return Releases(self._archive, self.ticks[at])
        return self._archive.release(self.ticks[at])

    def __len__(self) -> int:
        return len(self.ticks)

    def __iter__(self) -> Iterator[Release]:
        return map(self._archive.release, self.ticks)

    def counts(self, areas: Any = None, confidence: float = 0.95, to: str | None = None, *, where: Where = None) -> Any:
        """Return how many points there were in each area after each tick, with the columns of `Counts`."""
        return self._table(self.ticks, self._counts(areas, confidence, where), areas, to)

    def table(
        self, by: Any, layer: Any = None, confidence: float = 0.95, to: str = "arrow", *, where: Where = None
    ) -> Any:
        """Return counts by the values of attributes after each tick: the tables of `Release.table` in one."""
        self._check_any()
        kind = to if to == "geopandas" else "arrow"
        tables = [release.table(by, layer, confidence, kind, where=where) for release in self]
        return value_table(self.manifest, self.ticks, tables, to)

    def changes(
        self, areas: Any = None, confidence: float = 0.95, to: str | None = None, *, where: Where = None
    ) -> Any:
        """Return by how much counts changed since the tick before: ``value``, ``low`` and ``high``.

        An interval holds the true change at least as often as ``confidence`` says, as far as those of counts hold
        theirs: see `phdstream.history.over_time`.
        """
        self._check_follow()
        found = changes_between(self._counts(areas, each_side(confidence), where))
        return self._table(self.ticks[1:], found, areas, to)

    def rates(
        self,
        areas: Any = None,
        per: str = "1d",
        confidence: float = 0.95,
        to: str | None = None,
        *,
        where: Where = None,
    ) -> Any:
        """Return how many points come in a length of time such as ``"1h"``: ``value``, ``low`` and ``high``.

        Where points live for a window of ticks, it is the count by the time that the window covers. Where they stay,
        it is the change of a tick by its length: arrivals, less departures where points are deleted.
        """
        unit, every = parse_duration(per).total_seconds(), self._schedule.every
        window = self.manifest.get("window")
        if window is None:
            self._check_follow()
            found, ticks = changes_between(self._counts(areas, each_side(confidence), where)), self.ticks[1:]
            covered = np.full(len(ticks), every)
        else:
            counts, ticks = self._counts(areas, confidence, where), self.ticks
            found = OverTime({name: counts.columns[name] for name in ("value", "low", "high")})
            covered = every * np.minimum(np.array(ticks), int(window))
        return self._table(ticks, found.per(covered / unit), areas, to)

    def plot(self, what: str = "counts", areas: Any = None, axes: Any = None, *, where: Where = None) -> Any:
        """Draw the ticks with matplotlib: ``"counts"`` over time in some areas, or maps side by side.

        Maps show what `Release.plot` does: ``"points"``, ``"cells"``, ``"uncertainty"`` or ``"changes"``.
        """
        if what != "counts":
            if areas is not None or where is not None:
                raise InputError("maps show all points: areas and where= are for counts over time.")
            return draw_ticks(list(self), [self._schedule.label(tick) for tick in self.ticks], what)
        found = self._counts(areas, 0.95, where).columns
        names = names_of(areas, found["value"].shape[1])
        if len(names) > _MOST_LINES:
            raise InputError(f"{len(names)} areas are too many lines to tell apart: choose {_MOST_LINES} at most.")
        times, label = self._schedule.axis(self.ticks)
        return draw_lines(times, found, names, label, axes)

    def explore(self, areas: Any = None) -> ExplorePage:
        """Return the page of these releases, for a notebook or a file: `phdstream report` writes the same.

        Areas can be picked on it, by the names in a GeoDataFrame's first column of text. Needs the extra ``page``.
        """
        if not self.ticks:
            raise InputError("there are no releases to explore.")
        return explored_ticks(self.domain, self.manifest, self, areas, self.privacy)

    def _repr_html_(self) -> str:
        label = self._schedule.label
        when = f": {label(self.ticks[0])} to {label(self.ticks[-1])}" if self.ticks and self._schedule.timed else ""
        rows = [("Where", repr(self.domain)), ("Promise", self.privacy), ("Ticks", f"{len(self)}{self._range()}{when}")]
        return card_html(f"Releases in {self._archive.folder.name}", rows, _HINT)

    def __repr__(self) -> str:
        return f"<{len(self)} releases{self._range()} on {self.domain!r}; {self.privacy}>"

    def _range(self) -> str:
        return f" (ticks {self.ticks[0]} to {self.ticks[-1]})" if self.ticks else ""

    def _counts(self, areas: Any, confidence: float, where: Where) -> OverTime:
        self._check_any()
        ask = question(self.domain, areas, where)
        return OverTime.of([ask(release, confidence) for release in self])

    def _table(self, ticks: list[int], found: OverTime, areas: Any, to: str | None) -> Any:
        return area_table(self.domain, self.manifest, ticks, found, areas, to)

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.manifest)

    def _check_any(self) -> None:
        if not self.ticks:
            raise InputError("there are no releases to count in.")

    def _check_follow(self) -> None:
        missing = sorted(set(range(self.ticks[0], self.ticks[-1])) - set(self.ticks)) if self.ticks else []
        if missing:
            raise InputError(f"tick {missing[0]} is missing, so changes are not from tick to tick: take whole runs.")
        if len(self.ticks) < 2:
            raise InputError(f"a change needs two ticks; here {'is one' if self.ticks else 'are none'}.")
