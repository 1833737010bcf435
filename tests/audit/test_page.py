"""docs/audit.md shows every planted bug, the audit's check that sees it, and a test that does."""

from __future__ import annotations

from phdstream.app.audit.command import checks_of
from phdstream.audit.mutants import all_mutants
from tests.planted_bugs import MARKS, PAGE, recorded, table


def test_the_table_is_of_what_was_found() -> None:
    between = PAGE.read_text(encoding="utf-8").split(MARKS[0])[1].split(MARKS[1])[0]
    assert between.strip() == table(recorded())


def test_every_planted_bug_was_seen_by_both() -> None:
    found, checks = recorded(), {check.name for check in checks_of()}
    assert found.keys() == {mutant.name for mutant in all_mutants()}
    assert all(row["audit"] in checks and "::test_" in row["test"] for row in found.values())
