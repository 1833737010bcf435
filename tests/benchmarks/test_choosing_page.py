"""docs/choosing.md says what its tables and code say now."""

from __future__ import annotations

from benchmarks.choosing_page import checked, deployments, risks
from benchmarks.reproduction.results import DOCS


def test_the_page_is_of_its_template_and_tables() -> None:
    page = (DOCS / "choosing.md").read_text(encoding="utf-8")
    table, sentence = checked()
    for part in (table, sentence, risks(), deployments()):
        assert part in page
    template = (DOCS / "choosing.template.md").read_text(encoding="utf-8")
    fixed = template.replace("{{worth}}", "{{").replace("{{risk}}", "{{").replace("{{deployments}}", "{{")
    for part in fixed.replace("{{checked}}", "{{").replace("{{ratios}}", "{{").split("{{"):
        assert part in page
