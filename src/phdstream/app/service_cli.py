"""The commands around a service: ``serve``, ``token``, ``key``, ``backup``, ``restore``, ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phdstream.errors import ConfigError, InputError

__all__ = ["add_service_commands"]

_CONFIG = typer.Argument(help="The stream's TOML file.")


def _serve(
    configs: Annotated[list[Path], typer.Argument(help="One TOML file, or several: each stream has its own.")],
    host: Annotated[str | None, typer.Option(help="The address to listen at, instead of [service] host.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="The port, instead of [service] port.")] = None,
) -> None:
    """Take events in over HTTP and release every tick when it is due, until told to stop."""
    from phdstream.app.serve import serve

    serve(configs, host, port, lambda address: typer.echo(f"Serving at {address}v1 (Ctrl-C stops it)", err=True))


def _token(
    config: Annotated[Path, _CONFIG],
    name: Annotated[str | None, typer.Argument(help="The token's name; without one, those there are listed.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="ingest, read or operate; may be given several times.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Let the token be valid no more.")] = False,
) -> None:
    """Make, list or remove tokens. A new one is shown once; only its hash is kept."""
    from phdstream.app.config import load_config
    from phdstream.service.tokens import Tokens

    tokens = Tokens(load_config(config).state)
    if name is None:
        for token in tokens.all():
            typer.echo(f"{token.name}\t{', '.join(token.roles)}")
    elif remove:
        tokens.remove(name)
        typer.echo(f"{name} is not valid any more.", err=True)
    else:
        typer.echo(tokens.add(name, tuple(dict.fromkeys(role or []))))
        typer.echo("This token is shown once. Keep it as you would a password.", err=True)


def _key(config: Annotated[Path, _CONFIG]) -> None:
    """Add a key to the file that waiting events are encrypted with; the newest encrypts, all decrypt."""
    from phdstream.app.config import load_config
    from phdstream.service.encryption import add_key

    path = load_config(config).service.key_file
    if path is None:
        raise ConfigError(f"{config}: set [service] key_file, where the keys are to be.")
    number = add_key(path)
    typer.echo(f"Key {number} is in {path}. A running service takes it after a reload (kill -HUP, or POST /v1/reload).")
    typer.echo("Older keys may go once the ticks that were open when this one was added are released.")


def _backup(
    config: Annotated[Path, _CONFIG], target: Annotated[Path, typer.Argument(help="A private folder.")]
) -> None:
    """Copy the private folder, whole, also while the service runs. The copy is as private as the original."""
    from phdstream.app.config import load_config
    from phdstream.service.backup import copy_state

    typer.echo(
        f"Copied to {copy_state(load_config(config).state, target).resolve()}. PRIVATE: keep it as the original."
    )


def _restore(
    config: Annotated[Path, _CONFIG],
    source: Annotated[Path, typer.Argument(help="The folder that `backup` wrote to.")],
    seen: Annotated[
        int | None, typer.Option(min=0, help="If the releases are lost: the last tick that anybody may have seen.")
    ] = None,
) -> None:
    """Put a backup in the place of a lost private folder. Refused if it is older than what readers may have seen."""
    from phdstream.app.config import load_config
    from phdstream.io.archive import Archive
    from phdstream.service.backup import restore_state

    checked = load_config(config)
    there = Archive(checked.releases, checked.domain).last_tick
    if not there and seen is None:
        raise InputError(
            f"{checked.releases} has no releases, so it cannot be told what readers have seen. Put that folder back, "
            "or say --seen TICK: the last tick that anybody may have seen (0 if none was ever shown)."
        )
    tick = restore_state(source, checked.state, max(there, seen or 0))
    typer.echo(f"Restored at tick {tick}. Events accepted after the copy was made must be sent again, with their keys.")


def _doctor(config: Annotated[Path, _CONFIG]) -> None:
    """Look at everything that a service needs, and say what is wrong and what to do."""
    from phdstream.app.doctor import examine

    found = examine(config)
    for one in found:
        typer.echo(f"{one.mark}  {one.what}" + (f": {one.why}" if one.why else ""))
    if any(one.mark == "FAIL" for one in found):
        raise typer.Exit(1)


def add_service_commands(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for name, command in (
        ("serve", _serve), ("token", _token), ("key", _key), ("backup", _backup), ("restore", _restore),
        ("doctor", _doctor),
    ):  # fmt: skip
        app.command(name)(command)
