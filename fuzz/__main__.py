"""Run the fuzzer: see `fuzz`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from fuzz.cases import KINDS, Outcome, run_case
from fuzz.harness import all_cases, run_all


def main(arguments: list[str] | None = None) -> int:
    """Run cases, say what failed, write the figures; the status is 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Damaged files, odd arguments, odd queries.")
    parser.add_argument("--cases", type=int, default=100_000, help="how many cases in all")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--seed", type=int, default=1, help="the number of the first case of each kind")
    parser.add_argument("--only", action="append", choices=[*KINDS], help="a kind of cases; may be repeated")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--case", metavar="KIND:NUMBER", help="run one case alone, and show its traceback")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    asked = parser.parse_args(arguments)
    if asked.case:
        return _one(asked.case)
    names = all_cases(asked.cases, asked.seed, asked.only)
    summary = run_all(names, asked.processes, asked.seconds, _tell)
    for kind, counts in summary.kinds.items():
        _say(f"{kind}: " + ", ".join(f"{number:,} {what}" for what, number in counts.items()))
    if asked.json:
        asked.json.write_text(json.dumps(summary.to_dict(asked.seed), indent=1) + "\n")
    return 1 if summary.failures else 0


def _one(name: str) -> int:
    kind, number = name.split(":")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        outcome = run_case(kind, int(number), Path(folder) / kind)
    _say(f"{name} {outcome.what} in {outcome.seconds:.2f} s\n{outcome.why}")
    return 1 if outcome.what == "failed" else 0


def _tell(name: str, outcome: Outcome) -> None:
    if outcome.what == "failed":
        _say(f"FAILED {name}: {(outcome.why.strip().splitlines() or ['?'])[-1][:200]}")


def _say(text: str) -> None:
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
