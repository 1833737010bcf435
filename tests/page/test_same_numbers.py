"""The numbers that the page's counts share with the package's, without a browser: see also test_browser.py."""

from __future__ import annotations

import re
from importlib.resources import files

from phdstream.release import counts, unevenness


def test_the_page_widens_intervals_by_the_packages_numbers() -> None:
    text = files("phdstream.page").joinpath("js/tree.js").read_text(encoding="utf-8")
    found = {name: float(value) for name, value in re.findall(r"\b(STRETCH|SHARES|ALIKE) = ([0-9.]+)", text)}
    assert found == {"STRETCH": counts._STRETCH, "SHARES": unevenness._SHARES, "ALIKE": unevenness.ALIKE}
