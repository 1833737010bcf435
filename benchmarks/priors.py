"""What a public prior is worth: streams with a fitting one, with a wrong one, with none, and PHDStream. One command.

    python -m benchmarks.priors run [DATA]   # docs/results/priors.csv; DATA: the folder of the data files
    python -m benchmarks.priors write        # the tables of docs/priors.md anew, from the CSV
    python -m benchmarks.priors picture DATA # docs/figures/priors.png

Without DATA the invented streams are run and the results of the others are kept. `run` takes some half an hour on one
core. All methods have the same ε for an event over the whole stream, and the same questions at the same ticks.
An earlier release is one of the same ε, made by a stream of the days before; what it is a prior of are later events.
Wrong priors: noise (points anywhere), and the city upside down and back to front.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.parquet as pq

import phdstream as phd
from benchmarks.invented import places
from phdstream.arrays import Floats
from phdstream.evaluation.counting import count_points
from phdstream.evaluation.pictures import picture_of, subplots
from phdstream.evaluation.queries import domain_queries, relative_error, weighted_error

DOCS = Path(__file__).parents[1] / "docs"
TABLE, PAGE, FIGURE = DOCS / "results" / "priors.csv", DOCS / "priors.md", DOCS / "figures" / "priors.png"
EPSILONS, SEEDS = (0.5, 1.0, 2.0), (31, 32, 33)
"""Seeds that chose nothing: the numbers of `Prior` in the parameters were chosen on seeds 0 to 11."""
QUERIES = {"small": 2000, "medium": 1000, "large": 300}
CITY: dict[str, Any] = {"bounds": [(-74.3, -73.65), (40.5, 41.0)], "depth": 24, "crs": "EPSG:4326"}
_HALF = np.datetime64("2014-04-16")
Make: TypeAlias = Callable[[float, int], phd.Prior | None]


@dataclass(frozen=True)
class Case:
    """A stream of ticks, which to measure, and its priors by name: fitting ones first, then the wrong ones."""

    domain: phd.Domain
    ticks: list[Floats]
    measured: tuple[int, ...]
    priors: dict[str, Make]


def uber(data: Path) -> Case:
    """Pickups of the second half of April 2014, day by day."""
    time, points = _points(data / "uber_apr2014_full.parquet")
    after, domain = time >= _HALF, phd.Box(**CITY)
    ticks = _by(time[after], points[after], _HALF, np.timedelta64(1, "D"))
    first = _by(time[~after], points[~after], np.datetime64("2014-04-01"), np.timedelta64(1, "D"))
    gowalla = _points(data / "gowalla_nyc.parquet")[1]
    priors: dict[str, Make] = {
        "release of the first half": _released(domain, first),
        "check-ins of Gowalla": _fixed(lambda: phd.Prior.from_points(gowalla, about="check-ins")),
        "roads of Manhattan": _fixed(lambda: _roads(data)),
        "wrong: upside down": _fixed(lambda: phd.Prior.from_points(_turned(points[~after]), about="turned")),
        "wrong: noise": _fixed(lambda: _noise(domain)),
    }
    return Case(domain, ticks, (1, 2, 5, len(ticks)), priors)


def gowalla(data: Path) -> Case:
    """Check-ins in New York, by four weeks."""
    time, points = _points(data / "gowalla_nyc.parquet")
    domain, every = phd.Box(**CITY), np.timedelta64(28, "D")
    ticks = _by(time, points, np.datetime64("2009-04-01"), every)
    start = next(i for i in range(len(ticks)) if sum(map(len, ticks[: i + 1])) > 2000)
    ticks = [np.concatenate(ticks[: start + 1]), *ticks[start + 1 :]]
    pickups = _by(*_points(data / "uber_apr2014_full.parquet"), np.datetime64("2014-04-01"), np.timedelta64(1, "D"))
    priors: dict[str, Make] = {
        "release of Uber's pickups": _released(domain, pickups),
        "roads of Manhattan": _fixed(lambda: _roads(data)),
        "wrong: upside down": _fixed(lambda: phd.Prior.from_points(_turned(points), about="turned")),
        "wrong: noise": _fixed(lambda: _noise(domain)),
    }
    return Case(domain, ticks, (1, 2, 5, len(ticks)), priors)


def invented(number: int) -> Case:
    """Forty places, a tenth of the points anywhere, so many points a tick."""
    domain, kinds = phd.Box([(0, 1), (0, 1)]), 40
    ticks = [places(np.random.default_rng(i), number, kinds, 0.004, 0.1) for i in range(15)]
    before = [places(np.random.default_rng(100 + i), 10 * number, kinds, 0.004, 0.1) for i in range(3)]
    priors: dict[str, Make] = {
        "release of before": _released(domain, before),
        "wrong: upside down": _fixed(lambda: phd.Prior.from_points(1 - np.concatenate(before), about="turned")),
        "wrong: noise": _fixed(lambda: _noise(domain)),
    }
    return Case(domain, ticks, (1, 2, 5, len(ticks)), priors)


REAL: dict[str, Callable[[Path], Case]] = {"Uber, by day": uber, "Gowalla NYC, by four weeks": gowalla}
INVENTED: dict[str, Callable[[], Case]] = {
    "invented, 300 a tick": lambda: invented(300),
    "invented, 3,000 a tick": lambda: invented(3000),
}


def run(data: Path | None) -> None:
    """Run all cases that there is data for; keep the results of others."""
    cases: list[tuple[str, Callable[[], Case]]] = list(INVENTED.items())
    cases += [(name, lambda make=make: make(data)) for name, make in REAL.items()] if data else []  # type: ignore[misc]
    kept = [row for row in _read() if row["stream"] not in dict(cases)]
    for name, make in cases:
        for row in rows(name, make()):
            kept.append(row)
        _save(kept)


def rows(name: str, case: Case) -> Iterator[dict[str, Any]]:
    """Yield the errors of all methods on a stream: a row for each seed, ε, tick, size and method."""
    queries = domain_queries(case.domain, QUERIES, seed=5)
    live = [np.concatenate(case.ticks[:tick]) for tick in case.measured]
    true = [{size: count_points(points, asked) for size, asked in queries.items()} for points in live]
    for epsilon in EPSILONS:
        for seed in SEEDS:
            for method, stream in methods(case, epsilon, seed):
                for i, release in enumerate(releases(case, stream)):
                    for size, asked in queries.items():
                        found = count_points(release.sample(), asked)
                        errors = (
                            relative_error(true[i][size], found, len(live[i])),
                            weighted_error(true[i][size], found),
                        )
                        yield {
                            "stream": name, "epsilon": epsilon, "seed": seed, "tick": case.measured[i], "size": size,
                            "method": method, "error": f"{errors[0]:.5f}", "weighted": f"{errors[1]:.5f}",
                        }  # fmt: skip
            print(f"{name}, ε = {epsilon}, seed {seed}", flush=True)


def methods(case: Case, epsilon: float, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield a new stream of each method, by name."""
    fixed: dict[str, Any] = {"insert_only": True, "unit": phd.Event(), "epsilon": epsilon}
    yield "PHDStream", phd.PHDStream(case.domain, noise=phd.Simulation(seed), **fixed)
    yield "no prior", phd.TrackingStream(case.domain, noise=phd.Simulation(seed), **fixed)
    for name, make in case.priors.items():
        yield name, phd.TrackingStream(case.domain, noise=phd.Simulation(seed), prior=make(epsilon, seed), **fixed)


def releases(case: Case, stream: Any) -> Iterator[phd.Release]:
    """Yield the releases to measure."""
    for tick, points in enumerate(case.ticks, start=1):
        release = stream.update(points)
        if tick in case.measured:
            yield release


def _released(domain: phd.Domain, ticks: list[Floats]) -> Make:
    @cache
    def make(epsilon: float, seed: int) -> phd.Prior:
        noise = phd.Simulation(1000 + seed)
        stream = phd.TrackingStream(domain, epsilon, phd.Event(), insert_only=True, noise=noise)
        return phd.Prior.from_release([stream.update(tick) for tick in ticks][-1])

    return make


def _fixed(make: Callable[[], phd.Prior]) -> Make:
    made = cache(make)
    return lambda *_: made()


def _noise(domain: phd.Domain) -> phd.Prior:
    low, high = np.split(domain.bounds(np.array([1]))[0], 2)
    return phd.Prior.from_points(np.random.default_rng(3).uniform(low, high, (100_000, 2)), about="noise")


def _roads(data: Path) -> phd.Prior:
    return phd.Prior.from_lines(data / "geometry" / "manhattan_osmnx.gpkg", about="roads of OpenStreetMap")


def _turned(points: Floats) -> Floats:
    return np.array([-147.88, 81.5]) - points


def _points(path: Path) -> tuple[Any, Floats]:
    table = pq.read_table(path, columns=["time", "lon", "lat"])
    points = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
    return table["time"].to_numpy().astype("datetime64[s]"), points


def _by(time: Any, points: Floats, start: Any, every: Any) -> list[Floats]:
    """Return the points of each tick, up to the last that has any."""
    tick = (time - start) // every
    return [points[tick == t] for t in range(int(tick.max()) + 1)]


def _read() -> list[dict[str, Any]]:
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _save(kept: list[dict[str, Any]]) -> None:
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(kept[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)


def tables() -> str:
    """Return a table for each stream: errors at the first release and later, relative to those without a prior."""
    by: dict[Any, list[float]] = defaultdict(list)
    for row in _read():
        for metric in ("error", "weighted"):
            by[row["stream"], row["method"], row["tick"], row["size"], metric].append(float(row[metric]))
    mean = {key: float(np.exp(np.log(found).mean())) for key, found in by.items()}
    texts = []
    for stream in dict.fromkeys(key[0] for key in mean):
        found = list(dict.fromkeys(key[1] for key in mean if key[0] == stream))
        ticks = list(dict.fromkeys(key[2] for key in mean if key[0] == stream))
        texts.append(f"**{stream}**\n\n| prior | {' | '.join(f'tick {tick}' for tick in ticks)} |")
        texts.append("|---" * (len(ticks) + 1) + "|")
        for method in found:
            cells = [_cell(mean, stream, method, tick) for tick in ticks]
            texts.append(f"| {method} | {' | '.join(cells)} |")
        texts.append("")
    return "\n".join(texts)


def first_releases() -> str:
    """Return how many times PHDStream's error is that of the others, at the first release, by ε."""
    by: dict[Any, list[float]] = defaultdict(list)
    for row in _read():
        if row["tick"] == "1":
            by[row["stream"], row["method"], row["epsilon"], row["size"]].append(np.log(float(row["error"])))
    lines = ["| stream | prior | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |"]
    lines.append("|---" * (2 + len(EPSILONS)) + "|")
    for stream in dict.fromkeys(key[0] for key in by):
        for method in list(dict.fromkeys(key[1] for key in by if key[0] == stream))[1:]:
            cells = [
                "/".join(
                    f"{np.exp(np.mean(by[stream, 'PHDStream', at, size]) - np.mean(by[stream, method, at, size])):.1f}"
                    for size in QUERIES
                )
                for at in map(str, EPSILONS)
            ]
            lines.append(f"| {stream} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(mean: dict[Any, float], stream: str, method: str, tick: str) -> str:
    """Return small/medium/large errors over those without a prior, the paper's and (in brackets) the weighted ones."""
    sizes = {
        metric: "/".join(
            f"{mean[stream, method, tick, size, metric] / mean[stream, 'no prior', tick, size, metric]:.2f}"
            for size in QUERIES
        )
        for metric in ("error", "weighted")
    }
    return f"{sizes['error']} ({sizes['weighted']})"


def write() -> None:
    """Put the tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, made in {"tables": tables(), "first releases": first_releases()}.items():
        before, after = text.split(f"<!-- {name} -->")[0], text.split(f"<!-- end of {name} -->")[1]
        text = f"{before}<!-- {name} -->\n{made}<!-- end of {name} -->{after}"
    PAGE.write_text(text, encoding="utf-8")


def picture(data: Path) -> None:
    """Draw Manhattan on the first day: the truth, the release without a prior, and the one with."""
    case = uber(data)
    fixed: dict[str, Any] = {"insert_only": True, "unit": phd.Event(), "epsilon": 0.5, "noise": phd.Simulation(31)}
    prior = case.priors["release of the first half"](0.5, 31)
    shown = {
        "true pickups of the day": case.ticks[0],
        "first release, ε = 0.5, without a prior": phd.TrackingStream(case.domain, **fixed)
        .update(case.ticks[0])
        .sample(),
        "from last fortnight's release": phd.TrackingStream(case.domain, prior=prior, **fixed)
        .update(case.ticks[0])
        .sample(),
    }
    figure, axes = subplots(1, 3, panel=(4.0, 4.6))
    for axis, (title, points) in zip(np.ravel(axes), shown.items(), strict=True):
        axis.plot(*points.T, ",", color="#0b3d66")
        axis.set(xlim=(-74.03, -73.92), ylim=(40.69, 40.81), title=title, xticks=[], yticks=[], aspect=1.32)
    FIGURE.write_bytes(picture_of(figure).png)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "write", "picture"])
    parser.add_argument("data", type=Path, nargs="?")
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.data)
    elif arguments.what == "write":
        write()
    else:
        picture(arguments.data)


if __name__ == "__main__":
    main()
