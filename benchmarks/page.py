"""The page in Chromium: bytes, first paint, an update, frames a second while dragging; beside a bare page, in one run.

    python -m benchmarks.page                200,000 points in one tick, and a hundred ticks of a city
    python -m benchmarks.page --json FILE    writes the figures, too

The bare page has as many bytes in it and does nothing with them: what remains is the page's own work. All times are
Chromium's, without a graphics card. Nothing here is a test: times on a shared machine prove nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.page.browser import CHROMIUM, FLAGS, until
from tests.page.folders import CITY, DAILY, city_points

import phdstream as phd
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.page import write_report
from phdstream.page.quantise import Frame, encode_points

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
UPDATE = """async () => { const times = []; for (const at of [0, 1, 0, 1, 0, 1]) { const begin = performance.now();
await page.refresh({at}); times.push(performance.now() - begin); } return times; }"""
DRAG = """() => new Promise(done => { const times = []; let last = performance.now(), n = 0; const step = () => {
const now = performance.now(), { map } = page.views[0]; times.push(now - last); last = now;
map._rawPanBy(L.point(n % 40 < 20 ? 4 : -4, 2)); map.fire('move');
if (++n < 90) requestAnimationFrame(step); else done(times.slice(1)); }; requestAnimationFrame(step); })"""


def make(folder: Path, ticks: int, number: int, window: int | None) -> Path:
    """Write a folder of releases: so many ticks, so many points each."""
    stream = phd.TrackingStream(CITY, 1.0, phd.Event(), window=window, noise=phd.Simulation(seed=1))
    rng = np.random.default_rng(1)
    with ReleaseFolder(folder, "0" * 32, DAILY) as out:
        for _ in range(ticks):
            out.publish(stream.update(city_points(rng, number)))
    return folder


def measure(path: Path, bare: bool = False) -> dict[str, Any]:
    """Open a page a few times, and return the medians of what it took."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[float]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for _ in range(5):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            begin = time.perf_counter()
            page.goto(f"file://{path}")
            if not bare:
                page.wait_for_selector("body[data-ready=yes]", timeout=60_000)
            found.setdefault("ready_s", []).append(time.perf_counter() - begin)
            until(page, f"({PAINT}) > 0")
            found.setdefault("first_paint_s", []).append(page.evaluate(PAINT) / 1000)
            if not bare and page.evaluate("page.source.ticks.length") > 1:
                found.setdefault("update_s", []).append(statistics.median(page.evaluate(UPDATE)) / 1000)
                frames = page.evaluate(DRAG)
                found.setdefault("frames_per_second", []).append(1000 / statistics.mean(frames))
            page.close()
        browser.close()
    return {name: round(statistics.median(values), 3) for name, values in found.items()}


def bare_page(path: Path, size: int) -> Path:
    """Write a page of so many bytes that does nothing."""
    path.write_text(f"<!doctype html><title>bare</title><p>bare<script type='text/plain'>{'A' * size}</script>")
    return path


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--ticks", type=int, default=100)
    wanted = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as base:
        for name, ticks, number, window in (("200,000 points", 2, 75_000, None), ("a city", wanted.ticks, 3000, 7)):
            folder = make(Path(base) / name[:5], ticks, number, window)
            begin = time.perf_counter()
            page = write_report(folder, Path(base) / "page.html")
            made = time.perf_counter() - begin
            size = page.stat().st_size
            figures = measure(page) | {"bytes": size, "report_s": round(made, 2)}
            bare = measure(bare_page(Path(base) / "bare.html", size), bare=True)
            figures["first_paint_by_bare"] = round(figures["first_paint_s"] / bare["first_paint_s"], 2)
            results[name] = figures | {"bare": bare}
            print(name, json.dumps(results[name]))
        points = np.random.default_rng(1).uniform((-74.03, 40.69), (-73.90, 40.89), (200_000, 2))
        results["bytes of 200,000 points, served"] = len(encode_points(Frame.of(CITY).keys(points), None))
        print("bytes of 200,000 points, served:", results["bytes of 200,000 points, served"])
    if wanted.json:
        wanted.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
