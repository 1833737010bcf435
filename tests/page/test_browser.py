"""The file in a real browser: its counts are the product's, and everything on it can be used."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains.network import Network
from phdstream.domains.region import Region
from phdstream.io.archive import open_archive
from phdstream.page import write_report
from phdstream.page.coarse import coarsened
from tests.page.browser import file_address, needs_browser, opened, until
from tests.page.folders import HOSTILE, city_releases, write_folder, write_layer

pytestmark = [pytest.mark.slow, needs_browser]
COUNTS = "areas => areas.map(area => page.source.ticks.map((_, i) => page.source.countAt(area, i)))"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("report")
    folder = write_folder(base / "releases", city_releases())
    return write_report(folder, base / "report.html", write_layer(base / "wards.geojson"), "A city")


@pytest.fixture(scope="module")
def page(report: Path) -> Iterator[Any]:
    with opened(file_address(report), viewport={"width": 1280, "height": 900}) as page:
        yield page


def shapes(number: int = 60) -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(4)
    sides = np.sort(rng.uniform((-74.04, 40.68), (-73.89, 40.90), (number, 2, 2)), axis=1).reshape(number, 4)
    rings = []
    for _ in range(number // 2):
        angles, middle = np.sort(rng.uniform(0, 2 * np.pi, 7)), rng.normal((-73.98, 40.75), 0.02)
        rings.append((middle + rng.uniform(0.004, 0.03, (7, 1)) * np.c_[np.cos(angles), np.sin(angles)]).tolist())
    return sides, [ring for ring in rings if shapely.is_valid(shapely.Polygon(ring))]  # others cannot be drawn


@pytest.mark.parametrize("method", [phd.TrackingStream, phd.PHDStream])
@pytest.mark.parametrize("fanout", [2, 4])
def test_counts_are_those_of_the_release(tmp_path: Path, method: Any, fanout: int) -> None:
    """Rectangles and polygons, counted in the browser, against `Release.count` of the same coarse release."""
    city = phd.Box([(-74.03, -73.90), (40.69, 40.89)], names=("lon", "lat"), fanout=fanout)
    made = city_releases(4, domain=city, method=method)
    sides, rings = shapes()
    areas = [{"kind": "rectangle", "sides": one} for one in sides.tolist()]
    areas += [{"kind": "polygon", "ring": ring} for ring in rings]
    with opened(file_address(write_report(write_folder(tmp_path / "r", made), tmp_path / "page.html"))) as page:
        found = page.evaluate(COUNTS, areas)
    for tick, release in enumerate(made):
        coarse = coarsened(release)
        said = [coarse.count(sides), coarse.count_in([shapely.Polygon(ring) for ring in rings])]
        for end in ("value", "low", "high"):
            expected = np.concatenate([getattr(one, end) for one in said])
            ours = np.array([area[tick][end] for area in found])
            np.testing.assert_allclose(ours, expected, rtol=4e-3, atol=0.05)


OTHERS = {
    "region": Region(shapely.Point(-73.96, 40.78).buffer(0.1), names=("lon", "lat")),
    "network": Network(
        [shapely.LineString([(-74.0, 40.70), (-73.95, 40.80), (-73.93, 40.85)])], names=("lon", "lat"), snap=9
    ),
    "globe": phd.Globe(depth=14),
    "plane": phd.Box([(-100, 0), (0, 100)]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_domains_are_shown(tmp_path: Path, name: str) -> None:
    made = city_releases(2, 300, domain=OTHERS[name])
    with opened(file_address(write_report(write_folder(tmp_path / "r", made), tmp_path / "page.html"))) as page:
        assert page.evaluate("page.counts[1].value") == pytest.approx(made[1].total, rel=0.01)
        for show in ("cells", "density"):
            page.select_option("#show", show)
            until(page, f"page.state.show === '{show}'")
        cells = page.evaluate("page.frame.tree.leaves.length")
        assert cells == coarsened(made[1]).leaves.size
        assert page.is_visible("#approximate") == (name != "plane")


def test_a_private_stream_says_what_it_promises(tmp_path: Path) -> None:
    made = city_releases(2, 300, noise=None)
    with opened(file_address(write_report(write_folder(tmp_path / "r", made), tmp_path / "page.html"))) as page:
        said = page.inner_text("#promise-text")
        assert not page.is_visible("#simulated")
    assert "1-differentially private for each single event, over the whole stream" in said
    assert "at most 2.72 times as likely with their event in the data" in said
    assert "at most 73% sure" in said


def test_points_are_those_of_the_release_at_every_tick(page: Any, report: Path) -> None:
    archive = open_archive(report.parent / "releases")
    ticks = page.evaluate(
        """async () => { const out = []; for (let i = 0; i < page.source.ticks.length; i++) {
        const f = await page.source.frame(i); out.push([Array.from(f.x, page.plane.x.bind(page.plane)),
        Array.from(f.y, page.plane.y.bind(page.plane)), f.x.length - f.fresh, f.goneX.length]); } return out; }"""
    )
    for tick, (x, y, came, went) in enumerate(ticks, start=1):
        release = archive.release(tick)
        true = release.sample()
        assert len(x) == len(true)
        for ours, theirs, step in ((x, true[:, 0], 0.13 / 65536), (y, true[:, 1], 0.2 / 65536)):
            np.testing.assert_allclose(np.sort(ours), np.sort(theirs), atol=step)
        if tick > 1:
            assert came == pytest.approx(len(release.changes().inserts), abs=3)
            assert went == pytest.approx(len(release.changes().deletes), abs=3)


def test_it_says_what_it_is(page: Any) -> None:
    assert page.is_visible("#simulated")
    assert "[simulated, not private]" in page.title()
    said = page.inner_text("#promise-text")
    assert "Nothing is promised" in said
    assert "2024-04-01" in said
    assert "6 ticks" in said


def test_play_slider_and_changes(page: Any) -> None:
    page.select_option("#speed", "1200")
    page.click("#play")  # from the last tick: from the start
    until(page, "page.state.at === 0")
    until(page, "page.state.at === 1")
    page.click("#play")
    assert page.get_attribute("#play", "aria-pressed") == "false"
    page.select_option("#speed", "150")
    page.click("#play")
    page.wait_for_selector("#play[aria-pressed=false]")
    assert page.evaluate("page.state.at") == 5
    page.focus("#tick")
    page.keyboard.press("Home")
    until(page, "document.getElementById('now').textContent.includes('Tick 1,')")
    page.keyboard.press("ArrowRight")
    page.check("#changes")
    until(page, "document.getElementById('now').textContent.includes('went')")
    assert "Tick 2, 2024-04-02" in page.inner_text("#now")
    page.uncheck("#changes")


def test_draw_a_rectangle_and_read_chart_and_table(page: Any) -> None:
    page.click("#rectangle")
    box = page.locator("#map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 60, y - 40)
    page.mouse.down()
    page.mouse.move(x, y, steps=4)
    page.mouse.move(x + 60, y + 60, steps=4)
    page.mouse.up()
    until(page, "page.state.area?.kind === 'rectangle'")
    assert page.inner_text("#answer").startswith("Rectangle, Tick")
    assert page.locator("#chart svg .band").count() == 1
    page.click("#over-time summary")
    assert page.locator("#over-time-table tbody tr").count() == 6
    assert "rectangle=" in page.url
    page.click("#clear")
    assert page.inner_text("#answer").startswith("The whole map")


def test_draw_with_the_keyboard_alone(page: Any) -> None:
    page.focus("#polygon")
    page.keyboard.press("Enter")
    for keys in ("", "ArrowRight", "ArrowDown"):
        if keys:
            page.keyboard.press(keys)
            page.wait_for_timeout(400)
        page.keyboard.press("Space")
    page.keyboard.press("Enter")
    until(page, "page.state.area?.kind === 'polygon'")
    assert page.inner_text("#answer").startswith("Polygon")
    page.focus("#rectangle")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.get_attribute("#rectangle", "aria-pressed") == "false"
    page.click("#clear")


def test_a_double_click_ends_a_polygon(page: Any) -> None:
    page.click("#polygon")
    box = page.locator("#map").bounding_box()
    for dx, dy in ((0, 0), (80, 0), (80, 80)):
        page.mouse.click(box["x"] + 300 + dx, box["y"] + 300 + dy)
        page.wait_for_timeout(350)
    page.mouse.dblclick(box["x"] + 300, box["y"] + 380)
    until(page, "page.state.area?.kind === 'polygon'")
    page.click("#clear")


def test_pick_an_area_by_name(page: Any, report: Path) -> None:
    """As a reader would: how many points were in the park on a day, and how sure is that?"""
    page.select_option("#pick", label="The park")
    page.focus("#tick")
    page.keyboard.press("Home")
    until(page, "document.getElementById('answer').textContent.includes('Tick 1,')")
    park = json.loads((report.parent / "wards.geojson").read_text())["features"][0]["geometry"]
    release = open_archive(report.parent / "releases").release(1)
    count = release.count_in([shapely.from_geojson(json.dumps(park))])
    said = page.inner_text("#answer").replace(",", "")
    for end in ("value", "low", "high"):
        assert f"{np.floor(getattr(count, end)[0] + 0.5):.0f}" in said
    page.click("#all-areas summary")
    page.wait_for_selector("#areas-table table")
    assert page.locator("#areas-table tbody tr").count() == 2


def test_names_are_text(page: Any, report: Path) -> None:
    assert HOSTILE in page.locator("#pick option").all_inner_texts()
    page.select_option("#pick", label=HOSTILE)
    assert page.inner_text("#answer").startswith(HOSTILE)
    assert page.locator("img[src=x]").count() == 0
    assert HOSTILE not in report.read_text()


def test_hover_says_count_and_interval(page: Any) -> None:
    page.click("#clear")
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 + 90)
    until(page, "!document.querySelector('.hover').hidden")
    assert "to" in page.inner_text(".hover")


def test_downloads(page: Any) -> None:
    page.select_option("#pick", label="The park")
    rows = {}
    for what in ("points", "cells", "counts"):
        with page.expect_download() as download:
            page.click(f"#download-{what}")
        rows[what] = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
        assert rows[what][0]["privacy"] == "simulated, not private"
    assert len(rows["points"]) == page.evaluate("page.frame.x.length")
    assert sum(float(row["count"]) for row in rows["cells"]) == pytest.approx(
        page.evaluate("page.frame.total"), rel=0.01
    )
    assert [row["tick"] for row in rows["counts"]] == list("123456")
    with page.expect_download() as download:
        page.click("#download-cells-geojson")
    assert json.loads(Path(download.value.path()).read_text())["privacy"] == "simulated, not private"


def test_compare_and_a_link_to_it(page: Any, report: Path) -> None:
    page.check("#compare")
    page.wait_for_selector("#map-b .page-canvas")
    page.select_option("#show", "cells")
    assert "In comparison" in page.inner_text("#answer")
    fragment = page.evaluate("location.hash")
    other = page.context.new_page()
    other.goto(file_address(report, fragment))
    other.wait_for_selector("body[data-ready=yes]")
    assert other.evaluate("JSON.stringify(page.state)") == page.evaluate("JSON.stringify(page.state)")
    assert other.is_visible("#map-b")
    assert other.inner_text("#answer") == page.inner_text("#answer")
    other.close()
    page.uncheck("#compare")
