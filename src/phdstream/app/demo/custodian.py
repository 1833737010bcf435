"""What only the custodian of the demonstration's city would see: true and published, side by side. PRIVATE.

It is in a folder of its own that says so, and only its owner may read it, as it would have to be with real data.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from phdstream.app.demo.city import AREAS, CityRun
from phdstream.app.demo.pictures import draw_city
from phdstream.app.private_page import picture, private_html, table, write_private

__all__ = ["write_custodian"]


def write_custodian(out: Path, run: CityRun) -> Path:
    """Write the custodian's page, and return it."""
    folder = out / "PRIVATE-custodian"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return write_private(folder / "index.html", _html(run))


def _html(run: CityRun) -> str:
    rows = []
    for i, name in enumerate(AREAS):
        true, value, low, high = run.true[name], run.counts.value[i], run.counts.low[i], run.counts.high[i]
        holds = "yes" if np.floor(low) <= true <= np.ceil(high) else "no"
        rows.append([name, f"{true:,}", f"{value:,.0f}", f"{low:,.0f} to {high:,.0f}", holds])
    head = ["Area", "True (private)", "Published", "Interval", "Holds the truth"]
    return private_html(
        "The custodian's view: what is true, and what was published of it",
        "True pickups. With real data nobody but the custodian may see this page.",
        f"{picture(draw_city(run.live, run.release), 'True pickups on the left, synthetic points on the right')}"
        f"<h2>The last seven days, by area</h2>{table(head, rows)}"
        "<p>Intervals hold the truth about 95 times in 100. Nobody outside can tell in which areas they do not.</p>",
    )
