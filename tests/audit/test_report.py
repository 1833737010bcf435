"""The report: its schema holds, it never says that all is private, and the page needs nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest

from phdstream.app.audit.command import about, checks_of, run_checks, write_report
from phdstream.audit.finding import Effort, Finding, Progress, Violation
from phdstream.audit.report import code_digest, report, schema, to_html, verdict
from phdstream.errors import StateError


def findings(*statuses: str) -> list[Finding]:
    return [Finding(f"check {i}", "It holds.", status, ended="all") for i, status in enumerate(statuses)]


def test_the_schema_is_one_and_the_report_fits_it() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    for found in (findings("held"), findings("held", "violated", "left out")):
        found[0].seeds, found[0].largest_loss, found[0].lower_bound, found[0].epsilon = (0, 7), 0.99, 0.4, 1.0
        promise = {"method": "tracking", "epsilon": 1.0, "unit": {"type": "event"}, "domain": "Box"}
        for stream in (None, promise):
            jsonschema.validate(report(found, Effort(), stream), schema())


def test_a_report_that_lacks_something_does_not_fit() -> None:
    made = report(findings("held"), Effort())
    del made["checks"][0]["excess_found"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(made, schema())


@pytest.mark.parametrize("statuses", [("held",), ("held", "left out"), ("violated",)])
def test_it_never_says_that_all_is_private(statuses: tuple[str, ...]) -> None:
    page = to_html(report(findings(*statuses), Effort()))
    assert not re.search(r"is private\b|private: yes|guaranteed|certified|no risk", page, re.IGNORECASE)
    assert "Not covered" in page
    assert ("no proof" in verdict(findings(*statuses))) == ("violated" not in statuses)


def test_the_page_needs_nothing_else_and_shows_what_was_found() -> None:
    found = findings("violated")
    found[0].violated("case 3: <b>more</b> than ε")
    found[0].shows = "What `run` <does>."
    page = to_html(report(found, Effort()))
    assert "What <code>run</code> &lt;does&gt;." in page
    assert not re.search(r"(src|href)=|@import|url\(|<script", page)
    assert "case 3: &lt;b&gt;more&lt;/b&gt; than ε" in page


class Raising:
    name, shows = "raising", "Nothing."

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self, effort: Effort, progress: Progress) -> Finding:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Violation("it asked twice"), "it asked twice"),
        (StateError("at /home/ann"), "the product itself refused (StateError)"),
        (ValueError("17 events"), "it failed (ValueError)"),
    ],
)
def test_whatever_a_check_raises_is_a_finding_and_quotes_nothing(error: Exception, said: str) -> None:
    (found,) = run_checks([Raising(error)], Effort())
    assert (found.status, found.violations) == ("violated", [said])


def test_early_stopping_ends_with_the_first_violation() -> None:
    checks = [Raising(Violation("a")), Raising(Violation("b"))]
    assert len(run_checks(checks, Effort(stop_early=True))) == 1
    assert len(run_checks(checks, Effort())) == 2


def test_a_loss_above_its_limit_is_a_violation_and_one_at_it_is_not() -> None:
    finding = findings("held")[0]
    finding.saw_loss(1.0, 1.0, "here")
    assert finding.status == "held"
    finding.saw_loss(1.0001, 1.0, "here")
    assert finding.violations == ["here: the loss is 1.0001, and may be 1 at most"]


def test_it_is_written_as_page_and_data(tmp_path: Path) -> None:
    page, data = write_report(report(findings("held"), Effort()), tmp_path / "new" / "audit")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert '"format": "phdstream-audit-1"' in data.read_text(encoding="utf-8")
    assert re.fullmatch("[0-9a-f]{64}", code_digest())


def test_every_check_has_a_name_of_its_own() -> None:
    names = [check.name for check in checks_of()]
    assert len(set(names)) == len(names) >= 8
    assert about(None) is None
