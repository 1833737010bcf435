"""axe finds nothing serious, in light, dark and on a phone; a phone's page fits its screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from phdstream.page import write_report
from tests.page.browser import file_address, needs_browser, opened, until
from tests.page.folders import city_releases, write_folder, write_layer

pytestmark = [pytest.mark.slow, needs_browser]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LOOKS: list[dict[str, Any]] = [
    {"viewport": DESK, "color_scheme": "light"},
    {"viewport": DESK, "color_scheme": "dark", "reduced_motion": "reduce"},
    {"viewport": PHONE, "color_scheme": "light", "is_mobile": True, "has_touch": True},
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("everyone")
    folder = write_folder(base / "releases", city_releases(3))
    return write_report(folder, base / "report.html", write_layer(base / "wards.geojson"), "A city")


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_axe_finds_nothing_serious(report: Path, look: dict[str, Any]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with opened(file_address(report, "#tick=2&second=1&show=cells&area=0"), bypass_csp=True, **look) as page:
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        page.wait_for_selector("#areas-table table")
        found = Axe().run(page).response["violations"]
        assert page.evaluate("document.documentElement.scrollWidth") <= look["viewport"]["width"]
    serious = [
        (one["id"], [n["html"][:120] for n in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert not serious


def test_on_a_phone_a_polygon_is_tapped_and_a_rectangle_is_drawn(report: Path) -> None:
    with opened(file_address(report), **LOOKS[2]) as page:
        page.locator("#polygon").tap()
        page.locator("#map").scroll_into_view_if_needed()
        box = page.locator("#map").bounding_box()
        for dx, dy in ((100, 150), (220, 150), (220, 250)):
            page.touchscreen.tap(box["x"] + dx, box["y"] + dy)
            page.wait_for_timeout(400)
        page.locator("#polygon").tap()  # a phone has no Enter
        until(page, "page.state.area?.kind === 'polygon'")
        page.locator("#rectangle").tap()
        page.locator("#map").scroll_into_view_if_needed()
        box = page.locator("#map").bounding_box()
        touch = page.context.new_cdp_session(page)
        for kind, dx, dy in (("touchStart", 100, 120), ("touchMove", 150, 180), ("touchMove", 200, 240)):
            point = {"x": box["x"] + dx, "y": box["y"] + dy}
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        until(page, "page.state.area?.kind === 'rectangle'")
        assert page.inner_text("#answer").startswith("Rectangle")


def test_the_whole_way_by_keyboard(report: Path) -> None:
    """Tab reaches every control, in order, and each shows that it has the focus."""
    with opened(file_address(report), viewport=DESK) as page:
        reached = []
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.id"))
        wanted = [
            "map",
            "previous",
            "play",
            "next",
            "tick",
            "speed",
            "show",
            "changes",
            "compare",
            "rectangle",
            "polygon",
        ]
        wanted += ["clear", "pick", "west", "use-view", "download-points", "link"]
        at = [reached.index(one) for one in wanted]
        assert at == sorted(at)
        page.focus("#play")
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
