"""Does the test suite see planted bugs? Runs the test files that are to see each, with the bug in the code.

    python -m tests.planted_bugs [--write] [NAME ...]

``--write`` keeps the outcome in docs/results/mutants.csv, from which docs/audit.md has its table.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from phdstream.audit.mutants import Mutant, chosen, planted, run_with

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results" / "mutants.csv"
PAGE = ROOT / "docs" / "audit.md"
MARKS = "<!-- mutants -->", "<!-- /mutants -->"
COLUMNS = ("mutant", "audit", "test")
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
        test = rows.get(mutant.name, {}).get("test", "")
        lines.append(f"| {mutant.part} | {mutant.says} | {mutant.check} | {f'`{test}`' if test else ''} |")
    return "\n".join(lines)


def write_page(rows: dict[str, dict[str, str]]) -> None:
    """Put the table into docs/audit.md."""
    page = PAGE.read_text(encoding="utf-8")
    start, rest = page.split(MARKS[0])
    PAGE.write_text(f"{start}{MARKS[0]}\n{table(rows)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Try the mutants named, or all."""
    names, survived = [name for name in arguments if name != "--write"], 0
    for mutant in chosen(names):
        failed = first_failure(mutant)
        survived += not failed
        print(f"{mutant.name}: {failed or 'NOT SEEN'}", flush=True)
        if "--write" in arguments:
            rows = recorded()
            rows[mutant.name] = {"mutant": mutant.name, "audit": mutant.check, "test": failed}
            write(rows)
            write_page(rows)
    print(f"{survived} not seen")
    return min(survived, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
