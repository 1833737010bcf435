"""Who sees planted bugs? Runs the test files that are to see each, with the bug in the code; or the audit.

    python -m tests.planted_bugs [--audit] [--write] [NAME ...]

``--audit`` lets the audit look, at its default effort, as `phdstream audit --mutate` does, in place of the tests.
``--write`` keeps the outcome in docs/results/mutants.csv, from which docs/audit.md has its table.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from phdstream.app.audit.mutating import killed
from phdstream.audit.finding import Effort
from phdstream.audit.mutants import Mutant, chosen, planted, run_with

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results" / "mutants.csv"
PAGE = ROOT / "docs" / "audit.md"
MARKS = "<!-- mutants -->", "<!-- /mutants -->"
COLUMNS = ("mutant", "audit", "test")
OPTIONS = ("--audit", "--write")
_PATIENCE = 1200.0
_OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-rf", "--no-header", "--tb=no"]


def first_failure(mutant: Mutant) -> str:
    """Return the first test that fails with the bug; nothing if all pass."""
    with planted(mutant) as folder:
        status, output = run_with(folder, ["-m", "pytest", *_OPTIONS, *mutant.tests.split()], _PATIENCE, ROOT)
    if status is None:
        return "the time limit"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?(?:\[.*?\])?)(?: - .*)?$", output, re.MULTILINE)
    return failed[1].removeprefix("tests/") if status == 1 and failed else ""


def first_check(mutant: Mutant) -> str:
    """Return the first of the audit's checks that sees the bug, and say how long that took; nothing if none does."""
    outcome = killed(mutant, Effort())
    print(f"{outcome.line}; {outcome.said}", flush=True)
    return outcome.by


def recorded() -> dict[str, dict[str, str]]:
    """Return what was found before, by mutant."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return {row["mutant"]: row for row in csv.DictReader(file)}


def write(rows: dict[str, dict[str, str]]) -> None:
    """Keep what was found."""
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in (mutant.name for mutant in chosen([])) if name in rows)


def table(rows: dict[str, dict[str, str]]) -> str:
    """Return the outcomes as docs/audit.md shows them."""
    lines = ["| part | planted bug | the audit's check that sees it | a test that sees it |", "|---|---|---|---|"]
    for mutant in chosen([]):
        seen = rows.get(mutant.name, {})
        test = f"`{seen['test']}`" if seen.get("test") else ""
        lines.append(f"| {mutant.part} | {mutant.says} | {seen.get('audit', '')} | {test} |")
    return "\n".join(lines)


def write_page(rows: dict[str, dict[str, str]]) -> None:
    """Put the table into docs/audit.md."""
    page = PAGE.read_text(encoding="utf-8")
    start, rest = page.split(MARKS[0])
    PAGE.write_text(f"{start}{MARKS[0]}\n{table(rows)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Try the mutants named, or all."""
    names, survived = [name for name in arguments if name not in OPTIONS], 0
    column, look = ("audit", first_check) if "--audit" in arguments else ("test", first_failure)
    for mutant in chosen(names):
        seen_by = look(mutant)
        survived += not seen_by
        print(f"{mutant.name}: {seen_by or 'NOT SEEN'}", flush=True)
        if "--write" in arguments:
            rows = recorded()
            rows[mutant.name] = {"mutant": mutant.name} | rows.get(mutant.name, {}) | {column: seen_by}
            write(rows)
            write_page(rows)
    print(f"{survived} not seen")
    return min(survived, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
