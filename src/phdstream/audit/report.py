"""The report of an audit: plain data that a published schema describes, and one page that shows it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import phdstream
from phdstream.audit.finding import Effort, Finding
from phdstream.version import __version__

__all__ = ["code_digest", "report", "schema", "to_html", "verdict", "violated"]

NOT_COVERED = (
    "How long things take, and how large files and answers are: they depend on how many events there are.",
    "Whether and when a run stops: at a damaged file, or at a bad row with bad_rows = 'stop'.",
    "Copies: a state folder that is copied and goes on elsewhere releases ticks twice, with different noise.",
    "Who reads the input, the state folder or this machine's memory; the operating system's randomness itself.",
    "Other streams and other publications about the same people: their ε adds up.",
    "Whether ε, the domain, a prior and all settings were chosen without looking at the data.",
    "Events counted on a cluster (Spark), and brokers: their tests compare them with what is audited here.",
    "Faults smaller than each check says it would have found.",
    "What docs/privacy/known-limits.md lists.",
)
_PROOF = "docs/privacy/README.md"


@cache
def code_digest() -> str:
    """Return a digest of all code of the package, as it is on the disk."""
    root, digest = Path(phdstream.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def schema() -> dict[str, Any]:
    """Return the JSON schema of reports."""
    found: dict[str, Any] = json.loads((files(__package__) / "schema.json").read_text(encoding="utf-8"))
    return found


def violated(findings: Sequence[Finding]) -> bool:
    """Whether any check found a violation."""
    return any(finding.status == "violated" for finding in findings)


def verdict(findings: Sequence[Finding]) -> str:
    """Return what the audit comes to, in a sentence; never that all is private."""
    broken = [finding.check for finding in findings if finding.status == "violated"]
    if broken:
        return f"The promise is broken: {', '.join(broken)}. Do not release anything before that is understood."
    left = [finding.check for finding in findings if finding.status == "left out"]
    without = f" ({', '.join(left)} left out)" if left else ""
    return f"Nothing was found{without}. That is no proof: see what each check would have found, and what none covers."


def report(findings: Sequence[Finding], effort: Effort, about: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the report as plain data. ``about`` is what was configured: its promise, nothing of its data."""
    losses = [finding.largest_loss for finding in findings if finding.largest_loss is not None]
    bounds = [(finding.lower_bound, finding.epsilon) for finding in findings if finding.lower_bound is not None]
    lower, promised = max(bounds, default=(None, None))
    return {
        "format": "phdstream-audit-1",
        "phdstream": __version__,
        "code": code_digest(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "effort": {"scale": effort.scale, "seed": effort.seed},
        "stream": about,
        "verdict": verdict(findings),
        "violated": violated(findings),
        "upper_bound": {
            "epsilon": (about or {}).get("epsilon"),
            "unit": (about or {}).get("unit"),
            "proof": f"Proved on paper, in {_PROOF}, for the code it names; the audit checks that code.",
        },
        "largest_exact_loss": max(losses, default=None),
        "lower_bound": {"epsilon": lower, "of": promised},
        "not_covered": list(NOT_COVERED),
        "checks": [finding.to_dict() for finding in findings],
    }


def to_html(made: dict[str, Any]) -> str:
    """Return the report as one page that needs nothing else."""
    stream = made["stream"]
    what = f"{stream['method']} with ε = {stream['epsilon']:g}" if stream else "invented streams, both methods"
    rows = "\n".join(_row(check) for check in made["checks"])
    state = "broken" if made["violated"] else "held"
    largest, lower = made["largest_exact_loss"], made["lower_bound"]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>phdstream audit</title><style>{_STYLE}</style></head><body><main>
<h1>Audit of {escape(what)}</h1>
<p class="verdict {state}">{escape(made["verdict"])}</p>
<section class="numbers">
<div><b>{_promised(made)}</b><span>upper bound: proved on paper ({_PROOF})</span></div>
<div><b>{"none seen" if largest is None else _share(largest)}</b>
<span>largest exact loss seen, of what it may be</span></div>
<div><b>{"not tried" if lower["epsilon"] is None else f"{lower['epsilon']:.3g} of {lower['of']:g}"}</b>
<span>lower bound on ε that an attacker reached</span></div>
</section>
<table><thead><tr><th>Check</th><th>Result</th><th>How hard it looked</th><th>What it would have found</th></tr></thead>
<tbody>
{rows}
</tbody></table>
<h2>Not covered</h2>
<ul>{"".join(f"<li>{escape(line)}</li>" for line in made["not_covered"])}</ul>
<p class="small">phdstream {escape(made["phdstream"])}, code {made["code"][:16]}, made {escape(made["made"])}, effort
{made["effort"]["scale"]:g}, first seed {made["effort"]["seed"]}. “Would have found”: the least excess of ε, as a part
of it, found with 95% power; 0% where losses are computed and not sampled, for what the cases reach.</p>
</main></body></html>
"""


def _promised(made: dict[str, Any]) -> str:
    epsilon = made["upper_bound"]["epsilon"]
    return "each stream's ε" if epsilon is None else f"ε = {epsilon:g}"


def _share(share: float) -> str:
    return f"{100 * share:.2f}%"


def _row(check: dict[str, Any]) -> str:
    seen = [f"{check['trials']:,} trials", f"{check['samples']:,} samples"]
    if check["failure_probability"]:
        seen.append(f"false alarm below {check['failure_probability']:g}")
    if check["seeds"]:
        seen.append(f"seeds {check['seeds'][0]} to {check['seeds'][1]}")
    seen += [escape(check["ended"]), f"{check['seconds']:.0f} s"]
    loss = (
        "" if check["largest_loss"] is None else f"<br>largest loss {_share(check['largest_loss'])} of what it may be"
    )
    bad = "".join(f"<li>{escape(line)}</li>" for line in check["violations"])
    notes = "".join(f"<li>{escape(line)}</li>" for line in check["notes"])
    kind = check["status"].replace(" ", "-")
    return (
        f"<tr><td><b>{escape(check['check'])}</b><br>{_text(check['shows'])}"
        + (f"<ul class=bad>{bad}</ul>" if bad else "")
        + (f"<ul>{notes}</ul>" if notes else "")
        + f'</td><td><span class="mark {kind}">{escape(_STATUS[check["status"]])}</span></td>'
        + f"<td>{'<br>'.join(seen)}</td><td>{_found(check)}{loss}</td></tr>"
    )


def _text(plain: str) -> str:
    """Return text as HTML, with what stands in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(plain))


_STATUS = {"held": "nothing found", "violated": "violated", "left out": "left out"}


def _found(check: dict[str, Any]) -> str:
    if check["status"] == "left out":
        return "nothing"
    if check["excess_found"] is None:
        return "yes or no: a rule that is broken in the cases tried"
    return (
        f"an excess of {_share(check['excess_found'])} of ε"
        if check["excess_found"]
        else "any excess, in the cases tried"
    )


_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--line:#d9dee5;--back:#fff;--panel:#f5f7fa;--good:#1f6f43;
--bad:#a3231f}
@media(prefers-color-scheme:dark){:root{--ink:#e7ebf0;--soft:#9aa6b4;--line:#333c48;--back:#14181e;--panel:#1d232b;
--good:#6cc795;--bad:#ff8a80}}
body{margin:0;background:var(--back);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:2rem 1rem}
h1{font-size:1.7rem;margin:0 0 1rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}
.verdict{padding:.8rem 1rem;border-left:5px solid var(--good);background:var(--panel);font-size:1.05rem}
.verdict.broken{border-color:var(--bad)}
.numbers{display:flex;flex-wrap:wrap;gap:1rem;margin:1.5rem 0}
.numbers div{flex:1 1 15rem;background:var(--panel);padding:.8rem 1rem;border-radius:6px}
.numbers b{display:block;font-size:1.35rem}.numbers span,.small{color:var(--soft);font-size:.88rem}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.6rem .6rem;border-bottom:1px solid var(--line)}
td:first-child{max-width:30rem}td:nth-child(n+2){white-space:normal;min-width:8rem}
.mark{font-weight:600;color:var(--good);white-space:nowrap}.mark.violated{color:var(--bad)}.mark.left-out{color:var(--soft)}
ul{margin:.4rem 0 0;padding-left:1.2rem}.bad{color:var(--bad)}
@media(max-width:700px){table,tbody,tr,td{display:block}thead{display:none}td{border:0;padding:.2rem 0}
tr{border-bottom:1px solid var(--line);display:block;padding:.6rem 0}}
"""
