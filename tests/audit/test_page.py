"""docs/audit.md shows every planted bug, and a test that sees it."""

from __future__ import annotations

from phdstream.audit.mutants import all_mutants
from tests.planted_bugs import MARKS, PAGE, recorded, table


def test_the_table_is_of_what_was_found() -> None:
    between = PAGE.read_text(encoding="utf-8").split(MARKS[0])[1].split(MARKS[1])[0]
    assert between.strip() == table(recorded())


def test_what_was_found_is_of_mutants_that_there_are() -> None:
    assert recorded().keys() <= {mutant.name for mutant in all_mutants()}
