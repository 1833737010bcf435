"""What only the custodian of the demonstration's city would see: true and published, side by side. PRIVATE.

It is in a folder of its own that says so, and only its owner may read it, as it would have to be with real data.
"""

from __future__ import annotations

import base64
import html
from pathlib import Path

import numpy as np

from phdstream.app.demo.city import AREAS, CityRun
from phdstream.app.demo.pictures import draw_city
from phdstream.streams.state import replace_file

__all__ = ["write_custodian"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; border: 14px solid #8f1313; min-height: 100vh; background: #fff;
color: #1b1f24; box-sizing: border-box; } main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
.private { background: #8f1313; color: #fff; font-weight: 700; padding: .7rem 1rem; margin: 0; }
img { width: 100%; height: auto; } table { border-collapse: collapse; } td, th { padding: .25rem .9rem;
text-align: right; border-bottom: 1px solid #8a939c; } th:first-child, td:first-child { text-align: left; }
"""


def write_custodian(out: Path, run: CityRun) -> Path:
    """Write the custodian's page, and return it."""
    folder = out / "PRIVATE-custodian"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    page = folder / "index.html"
    replace_file(page, lambda file: file.write(_html(run).encode()), mode=0o600)
    return page


def _html(run: CityRun) -> str:
    picture = base64.b64encode(draw_city(run.live, run.release)).decode()
    rows = []
    for i, name in enumerate(AREAS):
        true, value, low, high = run.true[name], run.counts.value[i], run.counts.low[i], run.counts.high[i]
        holds = "yes" if np.floor(low) <= true <= np.ceil(high) else "no"
        cells = f"<td>{true:,}</td><td>{value:,.0f}</td><td>{low:,.0f} to {high:,.0f}</td><td>{holds}</td>"
        rows.append(f"<tr><th scope='row'>{html.escape(name)}</th>{cells}</tr>")
    return f"""<!doctype html><html lang='en'><head><meta charset='utf-8'><title>PRIVATE: the custodian's view</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head><body>
<p class='private'>PRIVATE. True pickups. With real data nobody but the custodian may see this page.</p><main>
<h1>The custodian's view: what is true, and what was published of it</h1>
<img alt='True pickups on the left, synthetic points on the right' src='data:image/png;base64,{picture}'>
<h2>The last seven days, by area</h2><table><thead><tr><th scope='col'>Area</th><th scope='col'>True (private)</th>
<th scope='col'>Published</th><th scope='col'>Interval</th><th scope='col'>Holds the truth</th></tr></thead>
<tbody>{"".join(rows)}</tbody></table>
<p>Intervals hold the truth about 95 times in 100. Nobody outside can tell in which areas they do not.</p>
</main></body></html>"""
