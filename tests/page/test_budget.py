"""What a page may weigh and take: bytes as such, times as ratios to a bare page with as many bytes, in the same run."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phdstream.page import write_report
from phdstream.page.quantise import Frame, encode_points
from tests.page.browser import CHROMIUM, FLAGS, needs_browser, until
from tests.page.folders import CITY, city_releases, write_folder

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def test_served_points_are_four_bytes_each() -> None:
    points = np.random.default_rng(1).uniform((-74.03, 40.69), (-73.90, 40.89), (200_000, 2))
    assert len(encode_points(Frame.of(CITY).keys(points), None)) < 1_000_000


@pytest.mark.slow
def test_a_tick_more_costs_what_changed(tmp_path: Path) -> None:
    """A hundred ticks of a city are a few megabytes: here ten are, in proportion."""
    made = city_releases(14, 3000, window=7)
    few, many = (
        write_report(write_folder(tmp_path / f"r{n}", made[:n]), tmp_path / f"{n}.html").stat().st_size for n in (4, 14)
    )
    assert (many - few) / 10 < 40_000
    assert few < 600_000


@pytest.mark.slow
@needs_browser
def test_first_paint_is_near_that_of_a_bare_page(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    page = write_report(write_folder(tmp_path / "r", city_releases(3, 10_000)), tmp_path / "page.html")
    bare = tmp_path / "bare.html"
    bare.write_text(f"<!doctype html><p>bare<script type='text/plain'>{'A' * page.stat().st_size}</script>")
    times: dict[Path, list[Any]] = {page: [], bare: []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for _ in range(5):
            for path, found in times.items():
                tab = browser.new_page()
                tab.goto(f"file://{path}")
                until(tab, f"({PAINT}) > 0")
                found.append(tab.evaluate(PAINT))
                tab.close()
        browser.close()
    assert statistics.median(times[page]) < 8 * statistics.median(times[bare])
