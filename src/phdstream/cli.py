"""The command line: ``phdstream run CONFIG.toml`` and ``phdstream demo``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from phdstream.errors import PhdstreamError
from phdstream.version import __version__

__all__ = ["main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
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


@app.command()
def run(
    config: Annotated[
        Path, typer.Argument(help="A TOML file that says what to read, what to promise, where to write.")
    ],
) -> None:
    """Turn files of events into a folder of private releases, one per tick; resumes where it stopped."""
    from phdstream.config import load_config
    from phdstream.progress import ticks_bar
    from phdstream.running import run as run_stream

    checked = load_config(config)
    with ticks_bar("ticks") as progress:
        report = run_stream(checked, progress)
    typer.echo(report.description)
    if report.last_tick >= report.first_tick:
        typer.echo(f"Released ticks {report.first_tick} to {report.last_tick} in {checked.releases}")
    else:
        typer.echo(f"Nothing left to do: all {report.last_tick} ticks are in {checked.releases}")
    if report.private_notes:
        typer.echo("PRIVATE, for the operator only, do not publish:", err=True)
        for note in report.private_notes:
            typer.echo(f"  - {note}", err=True)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its pictures.")] = Path("phdstream-demo"),
) -> None:
    """Simulate points that move from one circle to another, run the private stream, and draw what comes out."""
    from phdstream.demo import run_demo
    from phdstream.progress import ticks_bar

    with ticks_bar("demo") as progress:
        page = run_demo(out, progress)
    typer.echo(f"Look at {page.resolve()}")


def main() -> None:
    """Run the command line; a known error becomes one clear message and exit status 1."""
    try:
        app(standalone_mode=True)
    except PhdstreamError as error:
        typer.echo(f"phdstream: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("phdstream: interrupted. Run the same command again to go on where it stopped.", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
