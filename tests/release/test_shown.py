"""What notebooks and prompts show: what it is, what is promised, nothing that could run."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import phdstream as phd
from phdstream.release.shown import card_html, table_html
from tests.page.folders import CITY, city_releases

PROMISE = "1-differentially private for each single event (one appearance or one disappearance), over the whole stream"


def private_stream() -> phd.TrackingStream:
    return phd.TrackingStream(CITY, 1.0, phd.Event())


def parsed(html: str) -> str:
    """Return the text of a piece of HTML that is whole."""
    return " ".join(ElementTree.fromstring(f"<x>{html}</x>").itertext())


def test_a_stream_says_what_it_promises(tmp_path: Path) -> None:
    stream = private_stream()
    assert PROMISE in repr(stream)
    assert PROMISE in parsed(stream._repr_html_())
    assert "after 0 ticks" in repr(stream)
    with phd.durable(tmp_path / "state", private_stream()) as kept:
        assert PROMISE in repr(kept)
        assert "Durable TrackingStream after 0 ticks" in parsed(kept._repr_html_())
        kept.update(np.zeros((5, 2)))
        assert "after 1 tick " in parsed(kept._repr_html_())


def test_a_release_shows_its_promise_and_a_small_picture() -> None:
    release = city_releases(1)[0]
    shown = release._repr_html_()
    text = parsed(shown)
    assert "simulated, not private" in text
    assert f"about {release.total:,.0f}, synthetic" in text
    assert "<svg" in shown
    assert len(shown) < 40_000
    assert "tick 1 on Box" in repr(release)


def test_the_picture_is_darkest_where_most_points_are() -> None:
    points = np.full((500, 2), (-73.9205, 40.8805)) + np.random.default_rng(1).normal(0, 1e-4, (500, 2))
    stream = phd.TrackingStream(CITY, 5.0, phd.Event(), noise=phd.Simulation(1))
    shown = stream.update(points)._repr_html_()
    full = re.search(r'fill-opacity="1.00" d="([^"]*)"', shown)
    assert full
    where = re.findall(r"M(\d+) (\d+)h1", full[1])
    high = int(re.search(r'viewBox="0 0 40 (\d+)"', shown)[1])  # type: ignore[index]
    assert all(int(x) in (32, 33, 34) and int(y) in range(round(high * 0.07)) for x, y in where)


@pytest.mark.parametrize("domain", [phd.Hierarchy({"US": ["A", "B"]}), phd.Box([(0, 1)] * 3)])
def test_other_domains_are_shown_without_a_picture(domain: phd.Domain) -> None:
    stream = phd.TrackingStream(domain, 1.0, phd.Event(), noise=phd.Simulation(1))
    release = stream.update(domain.sample(np.array([1]), np.array([30]), 1))
    assert "<svg" not in release._repr_html_()
    assert parsed(release._repr_html_())


def test_a_release_of_little_use_says_so() -> None:
    stream = phd.TrackingStream(CITY, 0.1, phd.Event(), noise=phd.Simulation(1))
    assert "no better than publishing nothing" in parsed(stream.update([[-73.95, 40.75]])._repr_html_())


def test_a_held_release_is_shown() -> None:
    stream = phd.TrackingStream(CITY, 1.0, phd.Event(), start_after=2)
    assert "held until the start" in parsed(stream.update([[-73.95, 40.75]])._repr_html_())


def test_counts_show_intervals_and_say_what_they_hold() -> None:
    counts = city_releases(1)[0].count(np.tile([-74, 40.7, -73.95, 40.8], (30, 1)))
    text = parsed(counts._repr_html_())
    assert "holds the true count about 95% of the time" in text
    assert "and 10 more" in text
    assert repr(counts).startswith("<Counts of 30, 95% intervals: ")
    assert "simulated, not private" in repr(counts)


def test_changes_say_how_many_and_what_is_promised() -> None:
    release = city_releases(2)[-1]
    changes = release.changes()
    said = f"<Changes of tick 2: {len(changes.inserts):,} points appeared, {len(changes.deletes):,} disappeared; "
    assert repr(changes) == said + "simulated, not private>"
    assert f"{len(changes.inserts):,} synthetic points" in changes._repr_html_()
    assert f"about {release.total:,.0f} points, " in repr(release)


def test_names_are_no_html() -> None:
    hostile = "<script>alert(1)</script>"
    shown = card_html(hostile, [(hostile, hostile)], hostile) + table_html(hostile, [(hostile,), (hostile,)], hostile)
    assert "<script" not in shown
    assert parsed(shown).count(hostile) == 8
