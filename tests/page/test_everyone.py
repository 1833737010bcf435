"""axe finds nothing serious, in light, dark and on a phone; a phone's page fits its screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from phdstream.page import write_report
from tests.page.browser import file_address, needs_browser, opened
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
