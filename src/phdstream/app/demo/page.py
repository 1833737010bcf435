"""The demonstration's page: one HTML file with its pictures inside, so that it can be sent and opened anywhere."""

from __future__ import annotations

import base64
import html
from pathlib import Path

from phdstream.app.demo.comparison import OURS, POINTS, TICKS, Run
from phdstream.app.demo.pictures import draw_errors, draw_snapshots
from phdstream.streams.state import replace_file
from phdstream.version import __version__

__all__ = ["write_page"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 2.5rem; font-size: 1.25rem; }
img { width: 100%; height: auto; } figure { margin: 1rem 0; } figcaption { color: #57606a; font-size: .9rem; }
pre { background: #f6f8fa; padding: 1rem; overflow-x: auto; font-size: .82rem; } .lead { font-size: 1.1rem; }
table { border-collapse: collapse; } td, th { padding: .25rem .9rem; text-align: right; } th:first-child,
td:first-child { text-align: left; } tr { border-bottom: 1px solid #d0d7de; }
.views { display: flex; flex-wrap: wrap; gap: 1rem; } .views section { flex: 1 1 20rem; padding: 0 1rem .5rem; }
.views section { border: 2px solid #0b57a4; } .views .private { border: 8px double #8f1313; background: #fdf3f3; }
.views h2 { margin-top: .8rem; } .go { font-weight: 600; }
"""


def write_page(out: Path, runs: list[Run], city: Path, private: Path) -> Path:
    """Draw the pictures, write them and the page, and return the page."""
    pictures = {f"points-epsilon-{run.epsilon:g}.png": draw_snapshots(run) for run in runs}
    pictures["error.png"] = draw_errors(runs)
    for name, picture in pictures.items():
        _write(out / name, picture)
    page = out / "index.html"
    _write(page, _html(runs, pictures, city.relative_to(out), private.relative_to(out)).encode())
    return page


def _write(path: Path, content: bytes) -> None:
    replace_file(path, lambda file: file.write(content), mode=0o644)


def _html(runs: list[Run], pictures: dict[str, bytes], city: Path, private: Path) -> str:
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>phdstream demo</title>",
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head><body>",
        "<h1>phdstream, to look at</h1>",
        "<div class='views'><section><h2>What the public sees</h2><p>Five weeks of pickups in an invented city, "
        "published every day with exact noise. Play it, draw on it, pick the park: how many were there last week, and "
        f"how sure is that?</p><p><a class='go' href='{city}'>Open the city's page</a></p></section>",
        "<section class='private'><h2>PRIVATE: what the custodian sees</h2><p>The true pickups beside the published "
        "ones. With real data this page would never leave the custodian's machine.</p>"
        f"<p><a class='go' href='{private}'>Open the custodian's view</a></p></section></div>",
        "<h2>The paper's moving circles</h2>",
        f"<p class='lead'>{POINTS:,} points appear on an outer circle and then move, a few every tick, to an inner "
        f"one, over {TICKS} ticks. phdstream publishes a synthetic stream that follows them, while every single "
        "event keeps ε-differential privacy over the whole stream.</p>",
    ]
    for run in runs:
        parts += [
            f"<h3>ε = {run.epsilon:g}</h3>",
            _figure(
                pictures[f"points-epsilon-{run.epsilon:g}.png"],
                f"True points above, synthetic points below, ε = {run.epsilon:g}",
                "Above: the true points, which nobody outside sees. Below: what is published. Lines: the partition "
                "into cells, chosen from what was published before. Smaller ε is more private, and coarser.",
            ),
            f"<details><summary>What is promised</summary><pre>{html.escape(run.description)}</pre></details>",
        ]
    parts += [
        "<h2>Error over time</h2>",
        _figure(pictures["error.png"], "Error over time", _ABOUT_ERRORS),
        _table(runs),
    ]
    parts.append(
        f"<p><small>phdstream {__version__}; exact noise, so every run differs a little.</small></p></body></html>"
    )
    return "\n".join(parts)


_ABOUT_ERRORS = (
    "Average relative error of 1,000 small range queries (the paper's metric; lower is better). Tracking is what "
    "phdstream does unless told otherwise, PHDStream the paper's method, repaired; both keep ε over the whole stream. "
    "Baseline 1 re-runs a one-shot algorithm on all data at every tick and so spends ε again at each: its promise is "
    "broken from the second on. Baseline 2 looks at each tick's changes alone."
)


def _figure(picture: bytes, label: str, caption: str) -> str:
    data = base64.b64encode(picture).decode()
    return (
        f"<figure><img alt='{html.escape(label)}' src='data:image/png;base64,{data}'>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _table(runs: list[Run]) -> str:
    names = list(runs[0].errors)
    rows = [
        "<table><tr><th>mean over the run</th>" + "".join(f"<th>ε = {run.epsilon:g}</th>" for run in runs) + "</tr>"
    ]
    for name in names:
        means = "".join(f"<td>{sum(run.errors[name]) / len(run.errors[name]):.3f}</td>" for run in runs)
        rows.append(f"<tr><td>{'<b>' + name + '</b>' if name == OURS else name}</td>{means}</tr>")
    return "\n".join([*rows, "</table>"])
