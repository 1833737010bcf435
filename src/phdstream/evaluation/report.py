"""The report of an experiment: one HTML page with its figures inside."""

from __future__ import annotations

import base64
import html
from pathlib import Path

import pyarrow as pa

from phdstream.evaluation.advice import advice
from phdstream.evaluation.experiment import Experiment
from phdstream.evaluation.figures import draw_counts, draw_metric
from phdstream.evaluation.metric_texts import METRIC_TEXTS, NOTHING, MetricText, nothing_wins
from phdstream.evaluation.pictures import Picture, write_files, write_picture
from phdstream.evaluation.setting import data_file
from phdstream.evaluation.summary import Key, Mean, curves, means
from phdstream.version import __version__

__all__ = ["write_report"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 2.5rem; font-size: 1.25rem; } h3 { font-size: 1rem; }
img { width: 100%; height: auto; } figure { margin: 1rem 0; } figcaption { color: #57606a; font-size: .9rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .9rem; }
td, th { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #d0d7de; vertical-align: bottom; }
td { white-space: nowrap; vertical-align: top; } li { margin: .3rem 0; }
small { color: #57606a; } .private { background: #a4262c; color: white; padding: .6rem 1rem; font-weight: 600; }
@media print { .private { position: fixed; top: 0; left: 0; right: 0; margin: 0; } body { margin-top: 4rem; } }
"""
_ABOUT = (
    "Lower is better throughout. Means are over the measured ticks; ± is the standard deviation over seeds; in "
    "brackets the ratio to the first method; bold: better than publishing nothing, in the mean."
)
_LINES = "Lines: mean over seeds; bands: from the best seed to the worst."


def write_report(path: Path, experiment: Experiment, results: pa.Table) -> Path:
    """Write the page, and its figures beside it as PNG and SVG, and return the page."""
    pictures = _pictures(experiment, results)
    for name, picture in pictures.items():
        write_picture(path.parent, name, picture, experiment.private)
    write_files({path: _page(experiment, results, pictures).encode()}, experiment.private)
    return path


def _pictures(experiment: Experiment, results: pa.Table) -> dict[str, Picture]:
    pictures = {}
    for metric in METRIC_TEXTS:
        lines = curves(results, metric.column)
        for size in metric.sizes(experiment.queries):
            axis = metric.axis(size)
            pictures[metric.file(size)] = draw_metric(experiment, size, lines, axis, metric.nothing)
    return pictures | {"counts": draw_counts(experiment)}


def _page(experiment: Experiment, results: pa.Table, pictures: dict[str, Picture]) -> str:
    parts = [
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{html.escape(experiment.name)}</title>",
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head><body>",
        f"<p class='private'>{experiment.label}</p>" if experiment.label else "",
        f"<h1>Experiment {html.escape(experiment.name)}</h1>",
        *(f"<p>{html.escape(text)}</p>" for text in _about(experiment, results)),
        _recommendation(experiment, results),
    ]
    for metric in METRIC_TEXTS:
        parts += _metric(experiment, metric, results, pictures)
    parts += ["<h2>The data</h2>", _figure(pictures["counts"], "True points over all ticks; vertical lines: starts.")]
    parts.append(f"<p><small>phdstream {__version__}; simulated noise, for evaluation only.</small></p></body></html>")
    return "\n".join(parts)


def _metric(experiment: Experiment, metric: MetricText, results: pa.Table, pictures: dict[str, Picture]) -> list[str]:
    """Return the part of the page about one metric: what it is, what it cannot say here, its tables and figures."""
    summary = means(results, metric.column)
    parts = [f"<h2>{metric.title}</h2>", f"<p>{html.escape(metric.about)}</p>"]
    if metric.column == "error" and (warning := nothing_wins(experiment, summary)):
        parts.append(f"<p><strong>{html.escape(warning)}</strong></p>")
    for size in metric.sizes(experiment.queries):
        caption = " ".join(f"{metric.axis(size)}, over time. {_LINES}".split())
        parts += [f"<h3>{size.capitalize()} queries</h3>" if metric.by_size else ""]
        parts += [_table(experiment, size, summary), _figure(pictures[metric.file(size)], caption)]
    return parts


def _about(experiment: Experiment, results: pa.Table) -> list[str]:
    """Return what the data is, what was run, and what is measured."""
    data, seeds = experiment.data, len(set(results["seed"].to_pylist()))
    if experiment.private:
        what = f"Data: {data_file(experiment).name}, ticks of {data['every']} from {data['start']} to {data['end']}"
        what += f", each event deleted after {data['lifetime']}" if "lifetime" in data else ""
        what += f", thinned to {data['points']:,} events if there are more" if "points" in data else ""
    else:
        what = f"Data: simulated circles ({data['circles']}), {data['points']:,} points, {data['batch']} events a tick"
    asked = ", ".join(f"{number:,} {size}" for size, number in experiment.queries.items())
    expected = sum(1 for _ in experiment.trials())
    done = len(set(zip(*(results[k].to_pylist() for k in ("method", "epsilon", "t0", "seed")), strict=True)))
    return [
        f"{what}. Domain: {experiment.domain['type']}. Everything up to t0 is the first tick.",
        f"{seeds} seed{'s' * (seeds != 1)} of noise for each setting; {done} of {expected} trials finished. "
        f"Queries: {asked}, the same in all trials. {_ABOUT}",
    ]


def _recommendation(experiment: Experiment, results: pa.Table) -> str:
    items = "".join(f"<li>{html.escape(text)}</li>" for text in advice(experiment, results))
    return f"<h2>Settings to take</h2><ul>{items}</ul>" if items else ""


def _table(experiment: Experiment, size: str, summary: dict[Key, Mean]) -> str:
    heads = "".join(f"<th>{html.escape(experiment.method(name).label)}</th>" for name in experiment.methods)
    rows = [f"<table><tr><th>ε</th><th>t0</th>{heads}</tr>"]
    for epsilon in experiment.epsilons:
        for t0 in experiment.start_after:
            row = [summary.get((size, epsilon, t0, name)) for name in experiment.methods]
            nothing = summary.get((size, epsilon, t0, NOTHING))
            entries = "".join(f"<td>{_entry(mean, row[0], nothing)}</td>" for mean in row)
            rows.append(f"<tr><td>{epsilon:g}</td><td>{t0:g}</td>{entries}</tr>")
    return "\n".join([*rows, "</table>"])


def _entry(mean: Mean | None, first: Mean | None, nothing: Mean | None) -> str:
    if mean is None:
        return "not run"
    ratio = f"<br><small>({mean.mean / first.mean:.2f}×)</small>" if first and first.mean > 0 else ""
    better = nothing is not None and mean.mean < nothing.mean
    return f"<b>{mean}</b>{ratio}" if better else f"{mean}{ratio}"


def _figure(picture: Picture, caption: str) -> str:
    data = base64.b64encode(picture.png).decode()
    return (
        f"<figure><img alt='{caption}' src='data:image/png;base64,{data}'><figcaption>{caption}</figcaption></figure>"
    )
