"""`phdstream audit`: all checks, one after the other, and the report of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from phdstream.app.audit.books import BooksCheck
from phdstream.app.audit.deliveries import DeliveriesCheck
from phdstream.app.audit.pipeline import PipelineCheck
from phdstream.app.config import Config
from phdstream.audit.arithmetic import ArithmeticCheck
from phdstream.audit.canaries import CanaryCheck
from phdstream.audit.enumeration import EnumerationCheck
from phdstream.audit.finding import Check, Effort, Finding, Progress, Violation
from phdstream.audit.replay import ReplayCheck
from phdstream.audit.report import to_html
from phdstream.audit.sampler import SamplerCheck
from phdstream.audit.taint import TaintCheck
from phdstream.errors import InputError, PhdstreamError

__all__ = ["THOROUGH", "about", "checks_of", "run_checks", "write_report"]

THOROUGH = 12.0
"""How many times longer a thorough audit looks: an hour for five minutes."""


def checks_of(config: Config | None = None) -> list[Check]:
    """Return all checks; with a configuration also those of its stream, with production noise."""
    if config is None:
        return [
            ReplayCheck(), TaintCheck(), EnumerationCheck(), ArithmeticCheck(), SamplerCheck(), PipelineCheck(),
            DeliveriesCheck(), BooksCheck(), CanaryCheck(),
        ]  # fmt: skip
    make = replace(config, seed=None).stream
    stream = make()
    return [
        ReplayCheck(make), ReplayCheck(), TaintCheck(make), EnumerationCheck(stream), ArithmeticCheck(),
        SamplerCheck((stream.budget.count,)), PipelineCheck(), DeliveriesCheck(), BooksCheck(config), CanaryCheck(),
    ]  # fmt: skip


def about(config: Config | None) -> dict[str, Any] | None:
    """Return what is said of a configured stream: its promise."""
    if config is None:
        return None
    promise = {"method": config.method, "epsilon": config.epsilon, "unit": config.unit.to_dict()}
    return promise | {"domain": type(config.domain).__name__}


def run_checks(
    checks: Sequence[Check],
    effort: Effort,
    progress: Sequence[Progress] = (),
    done: Callable[[Finding], None] = lambda finding: None,
) -> list[Finding]:
    """Run checks in turn; whatever one raises is a finding. With ``effort.stop_early`` the first violation ends it."""
    findings = []
    for number, check in enumerate(checks):
        started = time.monotonic()
        try:
            finding = check.run(effort, progress[number] if progress else lambda done, total: None)
        except Exception as error:  # whatever the product does under a check, the audit goes on and says so
            finding = Finding(check.name, check.shows, ended="it raised an error")
            known = isinstance(error, Violation)
            where = "the product itself refused" if isinstance(error, PhdstreamError) else "it failed"
            finding.violated(str(error) if known else f"{where} ({type(error).__name__})")
        finding.seconds = round(time.monotonic() - started, 1)
        findings.append(finding)
        done(finding)
        if effort.stop_early and finding.status == "violated":
            break
    return findings


def write_report(made: dict[str, Any], out: Path) -> tuple[Path, Path]:
    """Write the report as a page and as JSON beside it; return both paths."""
    page, data = out.with_suffix(".html"), out.with_suffix(".json")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(to_html(made), encoding="utf-8")
        data.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"the report cannot be written to {page} ({error.strerror}): choose another --out.") from None
    return page, data
