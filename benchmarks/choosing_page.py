"""docs/choosing.md: its template, filled with risks, deployments, what points times ε are worth, and advice.csv.

Made by ``python -m benchmarks.choosing_page``.
"""

from __future__ import annotations

import csv

import numpy as np

import phdstream as phd
from benchmarks.reproduction.page import markdown
from benchmarks.reproduction.results import DOCS
from phdstream.app.plan.rehearsal import rehearse
from phdstream.app.plan.risk import DEPLOYMENTS, surest
from phdstream.app.plan.stream_plan import StreamPlan

BELIEFS, RISKS = (0.01, 0.1, 0.5, 0.9), (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
WORTH = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
WORDS = {
    "total": "error of the total",
    "map": "error of the map",
    "area": "squares of 0.1%",
    "smallest": "smallest area",
}


def risks() -> str:
    """Return how sure someone can become at most, for several ε."""
    rows = [[f"ε = {e:g}", *(f"{surest(belief, e):.1%}" for belief in BELIEFS)] for e in RISKS]
    return markdown(["sure before", *(f"{belief:.0%}" for belief in BELIEFS)], rows)


def deployments() -> str:
    """Return what others have promised."""
    return markdown(["who", "ε", "for", "source"], [list(each) for each in DEPLOYMENTS])


def worth() -> str:
    """Return what a map is worth, by points times ε."""
    rows = []
    for product in WORTH:
        found = rehearse(StreamPlan(1.0, phd.Event(), product // 10, 10))
        smallest = "none" if found.smallest_share >= 1 else f"{found.smallest_share:.3%}"
        verdict = found.verdict or "useful"
        rows.append([f"{product:,}", f"{found.total_error:.1%}", f"{found.map_error:.2f}", smallest, verdict])
    return markdown(["points · ε", "error of the total", "error of the map", "smallest area good to 10%", ""], rows)


def checked() -> tuple[str, str]:
    """Return the table of what was planned and measured, and a sentence on how far they are apart."""
    with (DOCS / "results" / "advice.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    by_stream = dict.fromkeys((row["stream"], row["epsilon"]) for row in rows)
    at = {(row["stream"], row["epsilon"], row["what"]): (row["planned"], row["measured"]) for row in rows}
    lines = [[*key, *(_both(what, *at[(*key, what)]) for what in WORDS)] for key in by_stream]
    table = markdown(["stream", "ε", *(f"{words}: planned, measured" for words in WORDS.values())], lines)
    sentences = [f"{WORDS[what].capitalize()}: {_ratio(at, what)}." for what in ("total", "map", "area")]
    return table, "Measured over planned, geometric mean (least to most): " + " ".join(sentences)


def _both(what: str, planned: str, measured: str) -> str:
    form = "{:.2f}" if what == "map" else "{:.3%}" if what == "smallest" else "{:.1%}"
    return ", ".join(form.format(float(value)) for value in (planned, measured))


def _ratio(at: dict[tuple[str, str, str], tuple[str, str]], what: str) -> str:
    ratios = np.array([float(after) / float(before) for key, (before, after) in at.items() if key[2] == what])
    return f"{np.exp(np.log(ratios).mean()):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def page() -> str:
    """Return the document."""
    text = (DOCS / "choosing.template.md").read_text(encoding="utf-8")
    table, ratios = checked()
    parts = {"risk": risks(), "deployments": deployments(), "worth": worth(), "checked": table, "ratios": ratios}
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    return text


if __name__ == "__main__":
    (DOCS / "choosing.md").write_text(page(), encoding="utf-8")
