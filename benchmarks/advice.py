"""Whether `phdstream plan` is right: what it says of four real streams before they are seen, and how they then went.

    python -m benchmarks.advice run DATA     # docs/results/advice.csv; some ten minutes; DATA holds the files
    python -m benchmarks.advice draw DATA    # docs/figures/choosing-epsilon.png: one city at several ε; needs Pillow

Each stream is New York's, in a box of about 55 km by 55 km. The plan is told only what its custodian would say without
looking: about how many events a tick has, how many ticks there are, and whether records expire.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import phdstream as phd
from benchmarks.reproduction.results import DOCS, shrink
from phdstream.app.plan.rehearsal import SIDES, rehearse, smallest_good, square_errors
from phdstream.app.plan.stream_plan import StreamPlan
from phdstream.arrays import Floats
from phdstream.evaluation.counting import count_points
from phdstream.evaluation.queries import weighted_error

BOUNDS = np.array([[-74.3, -73.65], [40.5, 41.0]])
UNIT_BOX = phd.Box([(0, 1), (0, 1)], depth=24)
EPSILONS, SEEDS, MOMENTS, AREA = (0.1, 0.5, 1.0, 2.0), (1, 2), 3, 0.001
COLUMNS = ["stream", "epsilon", "what", "planned", "measured"]


@dataclass(frozen=True)
class CityStream:
    """A file of events in New York, cut into ticks, and what its custodian would tell the plan."""

    file: str
    start: datetime
    tick: timedelta
    ticks: int
    told: int
    """About how many events a tick has."""
    window: int | None = None

    def batches(self, data: Path) -> list[Floats]:
        """Return the points of each tick, in the unit square."""
        table = pq.read_table(data / self.file, columns=["time", "lon", "lat"])
        since = pc.subtract(table["time"].cast("timestamp[us]"), np.datetime64(self.start, "us"))
        number = since.cast("int64").to_numpy() // (self.tick // timedelta(microseconds=1))
        low, high = BOUNDS.T
        points = (np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()]) - low) / (high - low)
        inside = ((points >= 0) & (points < 1)).all(axis=1)
        return [points[inside & (number == tick)] for tick in range(self.ticks)]


DAY = timedelta(days=1)
STREAMS = {
    "Uber, 6-hourly": CityStream("uber_apr2014_full.parquet", datetime(2014, 4, 1), DAY / 4, 120, told=4500),
    "Uber, a day's own points": CityStream(
        "uber_apr2014_full.parquet", datetime(2014, 4, 1), DAY, 30, told=18_000, window=1
    ),
    "check-ins, last 30 days": CityStream("gowalla_nyc.parquet", datetime(2010, 2, 1), DAY, 240, told=400, window=30),
    "taxi sample, weekly": CityStream(
        "nyc_yellow_taxi_sample_2009_2015.parquet", datetime(2009, 1, 1), 7 * DAY, 300, told=250
    ),
}


def measured(stream: CityStream, batches: list[Floats], epsilon: float) -> dict[str, float]:
    """Return how a stream really went, by what the plan speaks of."""
    found: list[list[float]] = []
    for seed in SEEDS:
        method = phd.TrackingStream(
            UNIT_BOX, epsilon, phd.Event(), window=stream.window, insert_only=True, noise=phd.Simulation(seed)
        )
        rng, moments = (
            np.random.default_rng(seed),
            np.linspace(len(batches) // 2, len(batches) - 1, MOMENTS).astype(int),
        )
        for tick, batch in enumerate(batches):
            release = method.update(batch)
            if tick in moments:
                found.append(_errors(release, _live(batches, tick, stream.window), rng))
    total, map_error, area, *by_side = np.mean(found, axis=0)
    smallest = smallest_good(np.array(by_side), 0.1)
    return {"total": total, "map": map_error, "area": area, "smallest": smallest}


def _live(batches: list[Floats], tick: int, window: int | None) -> Floats:
    return np.concatenate(batches[0 if window is None else max(0, tick + 1 - window) : tick + 1])


def _errors(release: phd.Release, live: Floats, rng: np.random.Generator) -> list[float]:
    side = AREA**0.5
    low = rng.random((2000, 2)) * (1 - side)
    squares = np.concatenate([low, low + side], axis=1)
    map_error = weighted_error(count_points(live, squares), release.count(squares).value)
    total = abs(release.total - len(live)) / len(live)
    return [total, map_error, *square_errors(release, live, (side, *SIDES), rng).tolist()]


def planned(stream: CityStream, epsilon: float) -> dict[str, float]:
    """Return what the plan says, before the stream is seen."""
    said = rehearse(StreamPlan(epsilon, phd.Event(), stream.told, stream.ticks, window=stream.window, area=AREA))
    return {"total": said.total_error, "map": said.map_error, "area": said.area_error, "smallest": said.smallest_share}


def run(data: Path) -> None:
    """Write docs/results/advice.csv."""
    rows = []
    for name, stream in STREAMS.items():
        batches = stream.batches(data)
        for epsilon in EPSILONS:
            before, after = planned(stream, epsilon), measured(stream, batches, epsilon)
            rows += [[name, f"{epsilon:g}", what, f"{before[what]:.4g}", f"{after[what]:.4g}"] for what in before]
            print(name, epsilon, {what: (f"{before[what]:.3g}", f"{after[what]:.3g}") for what in before}, flush=True)
    with (DOCS / "results" / "advice.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


def draw(data: Path) -> None:
    """Draw one city, true and released at several ε, for daily ticks and for hourly ones."""
    import matplotlib.pyplot as plt

    stream = STREAMS["Uber, a day's own points"]
    today = stream.batches(data)[-1]
    few = np.random.default_rng(1).permutation(today)[: len(today) // 24]
    panels = [("true points of a day", today, None), *((f"a day, ε = {e:g}", today, e) for e in (0.1, 1.0, 5.0))]
    panels += [("true points of an hour", few, None), *((f"an hour, ε = {e:g}", few, e) for e in (0.1, 1.0, 5.0))]
    figure, axes = plt.subplots(2, 4, figsize=(16, 8.6), layout="constrained")
    for axis, (title, points, epsilon) in zip(axes.flat, panels, strict=True):
        shown = points
        if epsilon is not None:
            method = phd.TrackingStream(UNIT_BOX, epsilon, phd.Event(), insert_only=True, noise=phd.Simulation(3))
            shown = method.update(points).sample()
        axis.plot(*shown.T, ",", color="#0b62c4" if epsilon else "#1b1f24")
        axis.set(title=title, xlim=(0.3, 0.9), ylim=(0.2, 0.8), xticks=[], yticks=[], aspect="equal")
    picture = DOCS / "figures" / "choosing-epsilon.png"
    figure.savefig(picture, dpi=110)
    plt.close(figure)
    shrink(picture, picture)


if __name__ == "__main__":
    {"run": run, "draw": draw}[sys.argv[1]](Path(sys.argv[2]))
