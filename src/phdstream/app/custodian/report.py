"""The custodian's report, one HTML file: releases, accuracy, trends, what was dropped, what is left of ε. **Private.**

Beside what was released, which is public, it shows the operator's exact tallies. So it is a file of its own, apart from
the page for everyone, marked PRIVATE, and only its owner may read it.
"""

from __future__ import annotations

from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from phdstream.app.config import Config
from phdstream.app.custodian.pictures import lines_png, maps_png
from phdstream.app.custodian.stand import Stand, how_it_stands
from phdstream.app.private_page import facts_table, picture, private_html, table, write_private
from phdstream.arrays import Floats
from phdstream.history import Releases, read_releases
from phdstream.history.schedule import Schedule
from phdstream.page.quantise import Frame
from phdstream.page.surroundings import Layer, read_layer_file
from phdstream.release import Release
from phdstream.release.counts import COLUMNS
from phdstream.release.usefulness import AREAS
from phdstream.version import __version__

__all__ = ["private_report", "write_custodian_report"]

_MOST_TICKS, _MOST_LINES, _MOST_ROWS = 400, 6, 60
_MARGINS = (
    "<p class='quiet'>The margin is half the interval by the count. The part of it that is noise would shrink with "
    "more ε; the rest is how points lie inside cells, and what came since they were last counted.</p>"
)
_OUTSIDE = "another place, or a value that is in no list; counted nowhere"
_ON_SPARK = "; nor is what Spark could not use of each file: each run says it"
_WARNING = "Exact tallies of a private stream. Nobody but its custodian may see this page; releases are what is public."


def private_report(config: Path) -> Path:
    """Return where the private part goes unless told otherwise: beside the configuration, named as what it is."""
    return config.with_name(f"{config.stem}-report-PRIVATE.html")


def write_custodian_report(config: Config, out: Path, layer: Path | None = None, title: str = "") -> Path:
    """Write the private report of a configured stream, and return where it is."""
    stand, releases = how_it_stands(config), read_releases(config.releases)
    parts = [_released(config, stand, releases)]
    if len(releases):
        areas = None
        if layer is not None:
            place = config.domain.location
            areas = read_layer_file(layer, place, Frame.of(place))
        parts += [_accuracy(releases[-1], areas), _trends(releases[-_MOST_TICKS:], stand, areas)]
    parts += [_dropped(stand), _left(stand)]
    made = f"<p class='quiet'>phdstream {__version__}, {datetime.now().astimezone().isoformat(' ', 'minutes')}</p>"
    name = title or "The custodian's report"
    return write_private(out, private_html(name, _WARNING, "\n".join([*parts, made])))


def _released(config: Config, stand: Stand, releases: Releases) -> str:
    rows = [("Ticks taken", f"{stand.tick:,}"), ("Releases", f"{len(releases):,} in {config.releases.name}")]
    first = max(1, config.stream().start_after)
    missing = sorted(set(range(first, stand.tick + 1)) - set(releases.ticks))
    if missing:
        some = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        rows.append(("Missing", f"ticks {some}: released once, and to be put back from a copy"))
    if len(releases):
        last = releases[-1]
        rows += [("Latest", f"tick {last.tick}: about {last.total:,.0f} points, {last.leaves.size:,} cells")]
    rows.append(("Kept as", f"{config.format}; the page for everyone is a file of its own"))
    promise = f"<details><summary>What is promised</summary><pre>{escape(stand.description)}</pre></details>"
    return f"<h2>What was released</h2>{facts_table(rows)}{promise}"


def _accuracy(release: Release, areas: Layer | None) -> str:
    """Return how accurate the latest release is expected to be, by size of area and place by place."""
    on_map = release.domain.location.dimension == 2
    useful = (release.places() if on_map else release).usefulness
    rows = [
        [f"{size}: {AREAS[size]:.2%} of the domain each", f"{error:.2f}", f"{useful.contrast[size]:.2f}"]
        for size, error in useful.expected_error.items()
    ]
    parts = [
        "<h2>How accurate it is expected to be</h2>",
        f"<p class='warning'>{escape(useful.warning)}</p>" if useful.warning else "",
        table(["Areas that are", "Error from noise", "Contrast"], rows),
        "<p class='quiet'>The error is what all counts of such areas are expected to be off, together, by all points: "
        "publishing nothing has 1. Contrast is how far the counts are from the total spread evenly: an error as large "
        "hides where points are.</p>",
    ]
    if on_map:
        parts.append(picture(maps_png(release), "Synthetic points, and how uncertain their counts are"))
    if areas is not None:
        parts += ["<h3>By area</h3>", _sure("Area", areas.names, release.count_in(list(areas.shapes)).columns())]
    for name in (attribute.name for attribute in release.domain.attributes):
        found = release.table([name]).to_pydict()
        columns = {column: np.array(found[column]) for column in COLUMNS}
        parts += [f"<h3>By {escape(name)}</h3>", _sure(name, found[name], columns)]
    if areas is not None or release.domain.attributes:
        parts.append(_MARGINS)
    return "".join(parts)


def _sure(of: str, names: list[str], counts: dict[str, Floats]) -> str:
    """Return a table of counts, how sure they are, and how much of that is privacy noise."""
    value, low, high = (counts[column] for column in ("value", "low", "high"))
    margin = (high - low) / 2
    noise = counts["noise_high"] - counts["noise_low"]
    noise = np.divide(noise, 2 * margin, out=np.zeros(margin.size), where=margin > 0)
    rows = [
        [
            names[i],
            f"{value[i]:,.0f}",
            f"{low[i]:,.0f} to {high[i]:,.0f}",
            f"{margin[i] / value[i]:.0%}" if value[i] >= 1 else "-",
            f"{noise[i]:.0%}",
        ]
        for i in range(min(len(names), _MOST_ROWS))
    ]
    more = f"<p>and {len(names) - _MOST_ROWS} more</p>" if len(names) > _MOST_ROWS else ""
    return table([of, "Count", "95% interval", "Margin", "Of it noise"], rows) + more


def _trends(releases: Releases, stand: Stand, areas: Layer | None) -> str:
    """Return counts over time, and the table of the last ticks with the true numbers of events beside them."""
    shapes = None if areas is None else list(areas.shapes[:_MOST_LINES])
    names = ["everything"] if areas is None else areas.names[:_MOST_LINES]
    found, total = releases.counts(shapes), releases.counts()
    ends = {name: found[name].to_numpy().reshape(len(releases), -1) for name in ("value", "low", "high")}
    schedule = Schedule(releases.manifest)
    times, label = schedule.axis(releases.ticks)
    drawn = picture(lines_png(times, ends, names, label), "Counts over time")
    return f"<h2>Trends</h2>{drawn}{_ticks(total, stand, schedule)}"


def _ticks(total: Any, stand: Stand, schedule: Schedule) -> str:
    when_called = schedule.axis([])[1].capitalize()
    head = ["Tick", *([when_called] if schedule.timed else []), "Released count", "95% interval", "Events read (true)"]
    rows = []
    for row in reversed(total.to_pylist()[-_MOST_ROWS:]):
        when = [schedule.label(row["tick"])] if schedule.timed else []
        read = f"{stand.counted[row['tick']]:,}" if row["tick"] in stand.counted else "-"
        rows.append([str(row["tick"]), *when, f"{row['value']:,.0f}", f"{row['low']:,.0f} to {row['high']:,.0f}", read])
    note = (
        "Events read are the inserts and deletes of that tick in files, exactly, before bounds; events that came to a "
        "service are not in it. The released count is of all points at hand after the tick."
    )
    return f"<div class='scroll'>{table(head, rows)}</div><p class='quiet'>{note}</p>"


def _dropped(stand: Stand) -> str:
    """Return what was not counted as it came, and what it may mean."""
    tally, rows = stand.tally, stand.dropped
    found = {
        "Could not be read": (rows["unreadable"], "bad rows of files"),
        "Outside the domain": (rows["outside"] + tally.outside, _OUTSIDE),
        "Of these, inside if swapped": (tally.swapped, "longitude and latitude?"),
        "Before the first tick": (rows["before"], "counted nowhere"),
        "Too late": (rows["late"], "their tick was released already"),
        "Beyond a user's bound": (tally.over_bound, "counted nowhere"),
        "Deletes of nothing": (tally.unmatched_deletes, "or more; counted as they came"),
    }
    facts = [(name, f"{number:,}: {what}") for name, (number, what) in found.items() if number]
    if stand.users is not None:
        users, inserts, deletes = stand.users
        also = f", {deletes:,} all their deletes" if stand.deletes else ""
        facts.append(("Users", f"{users:,} seen; {inserts:,} have used all their inserts{also}"))
    facts.append(("Files read", f"{stand.files:,}"))
    return (
        f"<h2>What was dropped</h2>{facts_table(facts)}"
        "<p class='quiet'>Of all files that were read, as they were when they were read last. What a service refused "
        f"it said to whoever sent it, and is not kept{_ON_SPARK if stand.on_spark else ''}.</p>"
    )


def _left(stand: Stand) -> str:
    """Return what is spent and left of ε, for this stream and for all that draw on its account."""
    account = f"<h3>The account</h3><pre>{escape(chr(10).join(stand.account))}</pre>" if stand.account else ""
    return f"<h2>What is left of ε</h2>{facts_table(stand.budget)}{account}"
