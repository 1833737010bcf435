"""What all trials of an experiment share: the domain, the true data, the queries. Loaded once in each process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from phdstream.arrays import Floats, Ints
from phdstream.domains import Box, Domain
from phdstream.domains.network import Network
from phdstream.domains.region import Region
from phdstream.errors import ConfigError, InputError
from phdstream.evaluation.circles import CIRCLES
from phdstream.evaluation.counting import count_points
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.queries import domain_queries
from phdstream.evaluation.true_stream import TrueStream
from phdstream.io.domain_table import DOMAIN_FILES, configured_domain
from phdstream.io.sources.clock import Clock, parse_duration
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import read_events
from phdstream.io.sources.reading import Reading

__all__ = ["Setting", "data_file", "load_setting"]

_SEED = 0
"""Data and queries are the same in all trials of an experiment; seeds are for the noise."""
_MICROSECOND = 1_000_000


@dataclass(frozen=True)
class Setting:
    """The domain, the true data inside it, and the queries by size."""

    domain: Domain
    truth: TrueStream
    queries: dict[str, Floats]

    def start_tick(self, t0: float) -> int:
        """Return the tick of the first release: t0 itself, or the one by which that share of the events has come."""
        if t0 >= 1:
            return int(t0)
        return max(1, int(np.searchsorted(self.truth.ends, t0 * self.truth.ends[-1])))

    @cached_property
    def codes(self) -> Ints:
        """The code of each of the true data's places in the domain, -1 for one outside: found once for all trials."""
        codes, inside = self.domain.encode(self.truth.places)
        return np.where(inside, codes, -1)

    def true_counts(self, tick: int, live: Floats) -> Ints:
        """Return how many of the points that are there at a tick lie in each query: counted once for all trials."""
        if tick not in self._counted:
            self._counted[tick] = count_points(live, np.concatenate(list(self.queries.values())))
        return self._counted[tick]

    @cached_property
    def _counted(self) -> dict[int, Ints]:
        return {}

    @cached_property
    def digest(self) -> str:
        """A digest of what is in it: of the domain's parameters and polygons, of every event and every query."""
        content = hashlib.sha256(repr(self.domain.summary()).encode())
        for array in (*vars(self.truth).values(), *self.queries.values()):
            content.update(f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return content.hexdigest()


def load_setting(experiment: Experiment, fanout: int | None = None) -> Setting:
    """Return an experiment's setting; ``fanout`` replaces the domain's, with the same finest cells."""
    first = _load(experiment.setting(), str(experiment.base), _changed(experiment), _Hidden(experiment))
    return first if fanout is None else Setting(_domain(experiment, fanout), first.truth, first.queries)


@dataclass(frozen=True, eq=False)
class _Hidden:
    """An argument that the cache does not look at."""

    experiment: Experiment

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hidden)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=2)
def _load(_setting: str, _base: str, _when: tuple[int, ...], hidden: _Hidden) -> Setting:
    experiment = hidden.experiment
    domain = _domain(experiment, None)
    if not isinstance(domain, Box | Region | Network):
        raise ConfigError(
            "experiments ask how many points lie in rectangles: the domain must be a box, region or network."
        )
    truth = _circles(experiment.data) if "circles" in experiment.data else _from_file(experiment, domain)
    setting = Setting(domain, truth, domain_queries(domain, experiment.queries, _SEED))
    for t0 in experiment.start_after:
        if t0 > truth.ticks:
            raise ConfigError(f"start_after is {t0:g}, but the data has only {truth.ticks} ticks.")
    return setting


def _domain(experiment: Experiment, fanout: int | None) -> Domain:
    fields = dict(experiment.domain)
    if fanout is not None:
        bits = int(np.log2(fields.get("fanout", 2))) * fields["depth"] if "depth" in fields else None
        fields |= {"fanout": fanout} | ({} if bits is None else {"depth": max(1, bits // int(np.log2(fanout)))})
    for key in set(DOMAIN_FILES) & set(fields):
        if Path(str(fields[key])).suffix and not (experiment.base / str(fields[key])).is_file():
            raise InputError(f"there is no file {experiment.base / str(fields[key])}, which [domain] {key} names.")
    try:
        return configured_domain(fields, experiment.data.get("coordinates", ["x", "y"]), experiment.base)
    except TypeError as error:  # a key that this type of domain does not have
        raise ConfigError(f"[domain] does not fit its type: {error}.") from None


def _circles(data: dict[str, Any]) -> TrueStream:
    """Return the circles, so many events a tick."""
    points, batch = data["points"], data["batch"]
    events, least = (points, 1) if data["circles"] == "growing" else (3 * points, 3)
    ticks = [(t.inserts, t.deletes) for t in CIRCLES[data["circles"]](points, max(least, events // batch), _SEED)]
    parts = [part for tick in ticks for part in tick]
    sizes = [len(part) for part in parts]
    tick, sign = np.repeat(np.arange(len(parts)) // 2 + 1, sizes), np.repeat(np.tile([1, -1], len(ticks)), sizes)
    return TrueStream.from_events(tick, np.concatenate(parts), sign, len(ticks))


def _from_file(experiment: Experiment, domain: Domain) -> TrueStream:
    data = experiment.data
    clock, ticks = _clock(data)
    time, points, sign = _events(data_file(experiment), data, clock)
    inside = domain.encode(points)[1] & (clock.tick_of(time) >= 1) & (clock.tick_of(time) <= ticks)
    if not inside.any():
        raise InputError("no event lies in the domain and between start and end: are the coordinates swapped?")
    time, points, sign = time[inside], points[inside], sign[inside]
    if "points" in data and len(points) > data["points"]:
        kept = np.sort(np.random.default_rng(_SEED).choice(len(points), data["points"], replace=False))
        time, points, sign = time[kept], points[kept], sign[kept]
    points, tick = _on_lines(domain, points) if isinstance(domain, Network) else points, clock.tick_of(time)
    if "lifetime" in data:
        later = time + int(parse_duration(data["lifetime"]).total_seconds()) * _MICROSECOND
        tick, points = np.concatenate([tick, clock.tick_of(later)]), np.concatenate([points, points])
        sign = np.concatenate([sign, -sign])
    return TrueStream.from_events(tick, points, sign, ticks)


def _clock(data: dict[str, Any]) -> tuple[Clock, int]:
    """Return the clock and how many ticks it has."""
    try:
        clock = Clock.between(data["start"], data["end"], data["every"])
    except ConfigError as error:  # a clock speaks of the section that a stream's configuration has
        raise ConfigError(str(error).replace("[ticks]", "[data]")) from None
    assert clock.count is not None
    return clock, clock.count


def _events(path: Path, data: dict[str, Any], clock: Clock) -> tuple[Ints, Floats, Ints]:
    """Return the times (microseconds), points and signs of a file, in order of time."""
    columns = Columns(tuple(data["coordinates"]), data["time"], data.get("sign"))
    batches = list(read_events([path], columns, Reading(zone=clock.zone)))
    time = np.concatenate([batch.time for batch in batches if batch.time is not None] or [np.zeros(0, np.int64)])
    points = np.concatenate([batch.points for batch in batches] or [np.zeros((0, len(columns.coordinates)))])
    sign = np.concatenate([batch.sign for batch in batches] or [np.zeros(0, np.int64)])
    order = np.argsort(time, kind="stable")
    return time[order], points[order], sign[order]


def data_file(experiment: Experiment) -> Path:
    """Return the file of the data, which must be there."""
    path = experiment.base / Path(experiment.data["file"]).expanduser()
    if not path.is_file():
        raise InputError(f"there is no file {path}, which [data] file names.")
    return path


def _changed(experiment: Experiment) -> tuple[int, ...]:
    """Return when the files of an experiment were changed; those that are not there are named later."""
    names = [experiment.data["file"]] if experiment.private else []
    names += [value for key, value in sorted(experiment.domain.items()) if key in DOMAIN_FILES]
    paths = [experiment.base / Path(str(name)).expanduser() for name in names]
    return tuple(path.stat().st_mtime_ns for path in paths if path.is_file())


def _on_lines(network: Network, points: Floats) -> Floats:
    """Return the nearest places on the lines; degrees are first scaled to equal lengths."""
    degrees = np.abs(points).max(initial=0) <= 360
    scale = np.array([np.cos(np.radians(points[:, 1].mean())) if degrees else 1.0, 1.0])
    lines = shapely.transform(shapely.get_parts(network.boundary()), lambda xy: xy * scale)
    at = shapely.points(points * scale)
    nearest = lines[shapely.STRtree(lines).nearest(at)]
    moved = shapely.line_interpolate_point(nearest, shapely.line_locate_point(nearest, at))
    return np.asarray(shapely.get_coordinates(moved) / scale)
