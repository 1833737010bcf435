"""The command line: ``phdstream check CONFIG.toml``, ``phdstream run CONFIG.toml``, ``phdstream demo`` and others.

Exit statuses: 0 done; 1 an error, with a message that says what to do; 2 the command itself was mistyped; 3 the input
can be read, but most of it cannot be used, and nothing was spent; 4 an audit found something; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from phdstream.app.audit_cli import add_audit_command
from phdstream.app.service_cli import add_service_commands
from phdstream.errors import PhdstreamError, UnusableError
from phdstream.version import __version__

__all__ = ["main"]

UNUSABLE = 3
_INTERRUPTED = 130

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done, 1 an error, 2 mistyped, 3 most input cannot be used (nothing spent), 4 an audit found "
    "something, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: Rich's would take longer to load than all the rest
    help="Live location data as a synthetic stream, with differential privacy over the whole stream.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"phdstream {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


_CONFIG = typer.Argument(help="A TOML file that says what to read, what to promise, where to write.")
_UNTIL = typer.Option(help="Take the ticks that end by this time, such as 2024-05-31, whether they are over or not.")


@app.command()
def run(
    config: Annotated[Path, _CONFIG],
    until: Annotated[datetime | None, _UNTIL] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Begin even if most rows cannot be used.")] = False,
    new_folder: Annotated[
        bool, typer.Option("--new-folder", help="Go on in an empty release folder; earlier ticks stay where they are.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Of a topic read by Spark: go on, and release ticks as they are over.")
    ] = False,
) -> None:
    """Turn events into a folder of private releases, one per tick that is over; resumes where it stopped."""
    from phdstream.app.config import load_config
    from phdstream.app.progress import ticks_bar
    from phdstream.app.run import run as run_stream
    from phdstream.errors import ConfigError

    checked = load_config(config)
    by_spark = checked.engine is not None and checked.source is not None
    if follow and not by_spark:
        raise ConfigError('--follow is of a [source] read by [engine] type = "spark"; for others there is `serve`.')
    if by_spark and until is not None:
        raise ConfigError("--until is of files: the ticks of a topic that Spark reads close by the clock.")
    with ticks_bar("reading files", "releasing ticks") as (reading, progress):
        if by_spark:
            from phdstream.app.run_topic import run_topic

            told = _say_tick if follow else progress
            report = run_topic(checked, told, follow=follow, new_folder=new_folder)
        else:
            report = run_stream(checked, progress, until=until, anyway=anyway, new_folder=new_folder, reading=reading)
    typer.echo(report.description)
    for line in report.notes:
        typer.echo(f"Note: {line}", err=True)
    for line in report.summary():
        typer.echo(line)
    for line in report.behind:
        typer.echo(f"Warning: {line}", err=True)
    if report.private_notes:
        typer.echo("PRIVATE, for the operator only, do not publish:", err=True)
        for note in report.private_notes:
            typer.echo(f"  - {note}", err=True)


def _say_tick(tick: int, last: int | None) -> None:
    typer.echo(f"Released tick {tick}.")


@app.command()
def check(
    config: Annotated[Path, _CONFIG],
    until: Annotated[datetime | None, _UNTIL] = None,
    picture: Annotated[Path | None, typer.Option(help="Where to draw the points; by default beside CONFIG.")] = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw none.")] = False,
) -> None:
    """Look before you spend: read all input, say what a run would do with it. PRIVATE; spends and releases nothing."""
    from importlib.util import find_spec

    from phdstream.app.check import check as check_input
    from phdstream.app.check import private_picture
    from phdstream.app.config import load_config
    from phdstream.app.progress import one_bar

    checked = load_config(config)
    if picture is None and find_spec("matplotlib"):
        picture = private_picture(config)
    with one_bar("reading files") as reading:
        report = check_input(checked, until=until, picture=None if no_picture else picture, progress=reading)
    typer.echo("PRIVATE: exact numbers, for the operator only. Do not publish.")
    for line in report.lines:
        typer.echo(line)
    if report.picture:
        typer.echo(f"picture: {report.picture.resolve()}")
    elif picture is None and not no_picture:
        typer.echo("picture: none, since it needs matplotlib: pip install 'phdstream[plot]'")
    typer.echo(report.verdict[0].upper() + report.verdict[1:])
    if not report.ready:
        raise typer.Exit(UNUSABLE)


@app.command()
def account(
    of: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A configuration with [account], or an account's folder.")
    ],
) -> None:
    """Show what was drawn of a population's ε, by which streams, and what is left; checks every line of the log."""
    from phdstream.account import AccountFolder
    from phdstream.account.report import account_lines
    from phdstream.app.config import load_config
    from phdstream.errors import ConfigError

    settings = None if of.is_dir() else load_config(of).account
    if settings is None and not of.is_dir():
        raise ConfigError(f"{of} has no section [account]: name the account's folder, population and epsilon there.")
    for line in account_lines(AccountFolder(settings.folder if settings else of).read()):
        typer.echo(line)


@app.command()
def card(config: Annotated[Path, _CONFIG]) -> None:
    """Draft the entry for OpenDP's public registry of deployments, as JSON; what [about] still lacks is listed."""
    import json

    from phdstream.app.card import card as draft
    from phdstream.app.card import last_tick, missing
    from phdstream.app.config import load_config

    checked = load_config(config)
    typer.echo(json.dumps(draft(checked, last_tick(checked)), indent=2, ensure_ascii=False))
    for line in missing(checked):
        typer.echo(f"Missing: {line}", err=True)


@app.command()
def evaluate(
    evaluation: Annotated[
        Path | None,
        typer.Argument(metavar="EVALUATION.toml", help="The data, its domain, what to compare; see --example."),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Print such a file to start from, and stop.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the results and the report.")] = Path("results"),
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one for each core.")] = None,
) -> None:
    """Compare methods on true data, by the paper's metric: tables, figures, a report. Resumes where it stopped."""
    from phdstream.app.progress import one_bar
    from phdstream.errors import ConfigError
    from phdstream.evaluation import example as example_text
    from phdstream.evaluation import load_experiment, run_experiment

    if example:
        typer.echo(example_text(), nl=False)
        return
    if evaluation is None:
        raise ConfigError("name the TOML file of an evaluation; phdstream evaluate --example prints one to start from.")
    experiment = load_experiment(evaluation)
    with one_bar("trials") as progress:
        outcome = run_experiment(experiment, out, workers, progress)
    typer.echo(f"{outcome.done} trials done now, {outcome.kept} were done before.")
    if outcome.report:
        typer.echo(f"Look at {outcome.report.resolve()}" + (f" ({outcome.label})" if outcome.label else ""))
    for trial, reason in outcome.failed.items():
        typer.echo(f"phdstream: {trial} failed: {reason}", err=True)
    if outcome.failed:
        many = f"{len(outcome.failed)} trial{'s' * (len(outcome.failed) > 1)}"
        typer.echo(f"phdstream: {many} failed; the same command tries again, and keeps what is done.", err=True)
        raise typer.Exit(1)


@app.command()
def report(
    of: Annotated[
        Path,
        typer.Argument(metavar="RELEASES", help="A folder of releases; or CONFIG.toml: the private part, too."),
    ],
    out: Annotated[Path, typer.Option(help="The public page to write.")] = Path("report.html"),
    private: Annotated[
        Path | None, typer.Option(help="Where the custodian's PRIVATE part goes; by default beside CONFIG.toml.")
    ] = None,
    layer: Annotated[Path | None, typer.Option(help="Areas to pick, such as wards: a GeoJSON file.")] = None,
    title: Annotated[str, typer.Option(help="What to call the stream.")] = "",
    tiles: Annotated[str, typer.Option(help="A source of map tiles, https://…/{z}/{x}/{y}.png; by default none.")] = "",
) -> None:
    """Write one page with a map of all releases: it opens in a browser, without a network. Public, as releases are.

    Of a CONFIG.toml also the report for its custodian, apart and PRIVATE: accuracy, trends, what was dropped, ε left.
    """
    from phdstream.app.progress import one_bar
    from phdstream.errors import InputError
    from phdstream.page import write_report

    if private is not None and not of.is_file():
        raise InputError("the private part is made from the state: name the stream's CONFIG.toml, not a folder.")
    releases = of
    if of.is_file():
        from phdstream.app.config import load_config
        from phdstream.app.custodian import private_report, write_custodian_report

        config = load_config(of)
        kept, releases = write_custodian_report(config, private or private_report(of), layer, title), config.releases
        typer.echo(f"PRIVATE, for the custodian only: {kept.resolve()}", err=True)
        if config.domain.location.dimension != 2:
            typer.echo(f"There is no public page: {config.domain!r} has no map.")
            return
    with one_bar("ticks") as progress:
        page = write_report(releases, out, layer, title, tiles, progress)
    typer.echo(f"Look at {page.resolve()} ({page.stat().st_size / 1e6:.1f} MB)")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pages and their pictures.")] = Path("phdstream-demo"),
) -> None:
    """Publish an invented city and the paper's moving circles, privately, and write pages to look at."""
    from phdstream.app.demo import run_demo
    from phdstream.app.progress import one_bar

    with one_bar("demo") as progress:
        page = run_demo(out, progress)
    typer.echo(f"Look at {page.resolve()}")


@app.command()
def plan(
    epsilon: Annotated[float, typer.Option(help="Privacy: smaller is more private.")] = 1.0,
    unit: Annotated[str, typer.Option(help="event, record, or user:INSERTS,DELETES such as user:4,4.")] = "event",
    events_per_tick: Annotated[int, typer.Option(help="About how many events a tick has.")] = 1000,
    ticks: Annotated[int, typer.Option(help="How many ticks the stream will have.")] = 100,
    deletes: Annotated[bool, typer.Option(help="Whether points are also deleted (half as many as come).")] = False,
    window: Annotated[int | None, typer.Option(help="Records expire after so many ticks.")] = None,
    target: Annotated[float, typer.Option(help="The relative error that is good enough.")] = 0.1,
    area: Annotated[float, typer.Option(help="The share of the domain whose counts should be that good.")] = 0.001,
    method: Annotated[
        str, typer.Option(help="tracking, tried out; or phdstream, the paper's, by arithmetic.")
    ] = "tracking",
) -> None:
    """Say what to expect, without touching data: what ε means, what the map is worth, which ε is needed, trade-offs."""
    from phdstream.app.plan.stream_plan import StreamPlan, parse_unit
    from phdstream.errors import InputError, did_you_mean

    wanted = StreamPlan(
        epsilon, parse_unit(unit), events_per_tick, ticks, deletes=deletes, window=window, target=target, area=area
    )
    if method not in ("tracking", "phdstream"):
        raise InputError(f"unknown method {method!r}: {did_you_mean(method, ['tracking', 'phdstream'])}")
    if method == "phdstream":
        from phdstream.app.plan.arithmetic import explain

        typer.echo(explain(wanted))
        return
    from phdstream.app.plan.advice import explain_rehearsal
    from phdstream.app.progress import one_bar

    with one_bar("Trying it out") as progress:
        text = explain_rehearsal(wanted, progress)
    typer.echo(text)


add_audit_command(app)
add_service_commands(app)


def main() -> None:
    """Run the command line; a known error becomes one clear message and exit status 1.

    An error that nobody foresaw is named only: its message, and the lines where it came up, may hold private values.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # where ε cannot be written, better a mark than no word at all
    try:
        app(standalone_mode=True)
    except PhdstreamError as error:
        typer.echo(f"phdstream: {error}", err=True)
        sys.exit(UNUSABLE if isinstance(error, UnusableError) else 1)
    except (KeyboardInterrupt, SystemExit) as end:  # typer turns Ctrl-C into an exit with status 130
        if isinstance(end, SystemExit) and end.code != _INTERRUPTED:
            raise
        typer.echo("phdstream: interrupted. Run the same command again to go on where it stopped.", err=True)
        sys.exit(_INTERRUPTED)
    except Exception as error:
        if os.environ.get("PHDSTREAM_TRACEBACK"):
            raise
        typer.echo(
            f"phdstream: an error that should not happen ({type(error).__name__}). What was released before stands, "
            "and the same command goes on. Please report it; PHDSTREAM_TRACEBACK=1 shows where it came up (keep that "
            "inside: it may hold private values).",
            err=True,
        )
        sys.exit(1)
