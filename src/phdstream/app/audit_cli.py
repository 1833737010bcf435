"""``phdstream audit``: try to break the promise, say how hard it was tried, and see whether planted bugs are seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from phdstream.audit.finding import Effort

__all__ = ["add_audit_command"]

FOUND = 4
"""Exit status: a check found a violation, or a planted bug was not seen."""


def _audit(
    config: Annotated[
        Path | None, typer.Argument(help="Audit this stream too: its promise on invented data, and its folders.")
    ] = None,
    thorough: Annotated[bool, typer.Option("--thorough", help="Look for an hour instead of minutes.")] = False,
    mutate: Annotated[
        bool, typer.Option("--mutate", help="Plant bugs, one at a time, and see that the audit finds each.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this check, or with --mutate only this bug; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed of random cases; another one tries others.")] = 0,
    out: Annotated[Path, typer.Option(help="Where to write the report; .html and .json.")] = Path("audit"),
) -> None:
    """Try to break the promise of privacy: replays, taint, enumeration, samplers, neighbours, crashes, canaries.

    Reads no events: all data is invented. Exit status: 0 nothing was found, 4 something was (or, with --mutate, a
    planted bug was not), 1 an error.
    """
    from phdstream.app.audit.command import THOROUGH
    from phdstream.audit.finding import Effort
    from phdstream.errors import InputError

    effort = Effort(THOROUGH if thorough else 1.0, seed)
    if mutate and config is not None:
        raise InputError("--mutate plants bugs in the code and looks at invented streams: leave the configuration out.")
    found = _mutate(only or [], effort) if mutate else _look(config, only or [], effort, out)
    if found:
        raise typer.Exit(FOUND)


def _look(config: Path | None, only: list[str], effort: Effort, out: Path) -> bool:
    """Run the checks, write the report; return whether something was found."""
    from phdstream.app.audit.command import about, checks_of, run_checks, write_report
    from phdstream.app.config import load_config
    from phdstream.app.progress import ticks_bar
    from phdstream.audit.finding import Finding
    from phdstream.audit.report import report
    from phdstream.errors import InputError, did_you_mean

    checked = None if config is None else load_config(config)
    checks = checks_of(checked)
    for name in only:
        if name not in {check.name for check in checks}:
            raise InputError(f"there is no check '{name}': {did_you_mean(name, [check.name for check in checks])}")
    checks = [check for check in checks if not only or check.name in only]

    def done(finding: Finding) -> None:
        typer.echo(f"{_MARKS[finding.status]:>13}  {finding.check}: {finding.ended}, {finding.seconds:.0f} s")
        for what in finding.violations:
            typer.echo(f"{'':>15}{what}")

    with ticks_bar(*(check.name for check in checks)) as bars:
        findings = run_checks(checks, effort, bars, done)
    made = report(findings, effort, about(checked))
    page, data = write_report(made, out)
    typer.echo(made["verdict"])
    typer.echo(f"Look at {page.resolve()} (as data: {data.resolve()})")
    return bool(made["violated"])


_MARKS = {"held": "nothing found", "violated": "VIOLATED", "left out": "left out"}


def _mutate(only: list[str], effort: Effort) -> bool:
    """Let the audit look at planted bugs; return whether one of them was not seen."""
    from phdstream.app.audit.mutating import Outcome, mutate
    from phdstream.app.progress import one_bar
    from phdstream.audit.mutants import chosen

    mutants = chosen(only)

    def done(outcome: Outcome) -> None:
        typer.echo(outcome.line)
        typer.echo(f"    {outcome.mutant.file}: {outcome.mutant.says}")
        if outcome.said:
            typer.echo(f"    {outcome.said}")

    with one_bar("planted bugs") as progress:
        outcomes = mutate(mutants, effort, progress, done)
    seen = sum(outcome.caught for outcome in outcomes)
    typer.echo(f"{seen} of {len(outcomes)} planted bugs were found.")
    return seen < len(outcomes)


def add_audit_command(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("audit")(_audit)
