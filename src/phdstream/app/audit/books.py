"""The books: state, releases and manifest agree; a tick is released once, whatever happens; nothing twice."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq

from phdstream.app.audit.neighbours import base_rows, public_files
from phdstream.app.audit.pipeline import BOX, CONFIG, USERS, written
from phdstream.app.config import Config, load_config
from phdstream.app.run import run
from phdstream.audit.finding import Effort, Finding, Progress, Violation
from phdstream.errors import PhdstreamError, StateError
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.io.sinks.writers import FORMATS
from phdstream.io.sources.counted_inputs import CountedInputs
from phdstream.privacy import User
from phdstream.streams import stream as stream_module
from phdstream.streams.durable.commits import Commits, Marker
from phdstream.streams.durable.stream import durable
from phdstream.streams.state import Arrays, read_state, unnest

__all__ = ["BooksCheck"]

_DAY = 3


class BooksCheck:
    """Crashes, old backups, doubled files, altered settings on invented runs; and the operator's own folders."""

    name = "ledger"
    shows = (
        "State, releases and manifest agree; a tick has one content, also after a crash; an older state, a copy, a "
        "file that comes twice or has changed, and other settings are refused; no user is above their bound."
    )

    def __init__(self, config: Config | None = None) -> None:
        self._config = config

    def run(self, effort: Effort, progress: Progress) -> Finding:
        """Try every mishap, with both methods."""
        finding = Finding(self.name, self.shows)
        number = len(_MISHAPS) * effort.number(2, least=1)
        for i in range(number):
            progress(i, number)
            mishap, method = _MISHAPS[i % len(_MISHAPS)], ("phdstream", "tracking")[i // len(_MISHAPS) % 2]
            name = (mishap.__doc__ or "").rstrip(".")
            with tempfile.TemporaryDirectory() as folder:
                try:
                    mishap(_begun(Path(folder), method, effort.seed + i))
                except (Violation, PhdstreamError) as error:
                    kind = str(error) if isinstance(error, Violation) else f"refused ({type(error).__name__})"
                    finding.violated(f"{name}: {kind}")
            finding.trials += 1
        finding.seeds = (effort.seed, effort.seed + number - 1)
        finding.ended = f"all {len(_MISHAPS)} mishaps, {number} times in all"
        finding.samples = finding.trials
        if self._config is not None:
            _yours(finding, self._config)
        progress(number, number)
        return finding


def _begun(folder: Path, method: str, seed: int) -> Config:
    """Return the configuration of a stream of which two ticks were released."""
    columns = 'sign = "sign"\nuser = "who"'
    text = CONFIG.format(ending="csv", method=method, unit=USERS, domain=BOX, input=columns)
    config = written(folder, text, base_rows(np.random.default_rng((seed, 6)), 80), "csv", 2)
    _run(config, _DAY)
    return config


def _run(config: Config, day: int) -> None:
    run(load_config(config.state.parent / "stream.toml"), until=datetime(2024, 3, day))


def _crash_after_the_commit(config: Config) -> None:
    """A crash between commit and publication."""
    with patch.object(ReleaseFolder, "publish", side_effect=_CrashError):
        _expect(_CrashError, lambda: _run(config, _DAY + 1), "the crash was swallowed")
    committed = _released(config)
    _run(config, _DAY + 1)
    _check_published(config, committed)


def _crash_before_the_commit(config: Config) -> None:
    """A crash before the commit."""
    before = public_files(config.releases)
    with patch.object(Commits, "save", side_effect=OSError("full")):
        _expect(StateError, lambda: _run(config, _DAY + 1), "a commit that failed was taken for one that did not")
    if public_files(config.releases) != before:
        raise Violation("something of a tick that was never committed is public")
    _run(config, _DAY + 1)
    _agree(config)


def _an_older_state(config: Config) -> None:
    """An older state is put back beside its marker."""
    backup = config.state.parent / "backup.npz"
    shutil.copy(config.state / "state.npz", backup)
    _run(config, _DAY + 1)
    shutil.copy(backup, config.state / "state.npz")
    _expect(PhdstreamError, lambda: durable(config.state, config.stream()).close(), "an older state was opened")
    _expect(PhdstreamError, lambda: _run(config, _DAY + 2), "an older state went on: ticks would be released twice")


def _a_whole_backup(config: Config) -> None:
    """The whole private folder is put back from a backup, the releases are not."""
    backup = config.state.parent / "backup"
    shutil.copytree(config.state, backup)
    _run(config, _DAY + 1)
    shutil.rmtree(config.state)
    shutil.copytree(backup, config.state)
    config.state.chmod(0o700)
    _expect(PhdstreamError, lambda: _run(config, _DAY + 2), "a second state, from a backup, went on")


def _another_state(config: Config) -> None:
    """Another stream's state goes on with these releases."""
    shutil.rmtree(config.state)
    _expect(PhdstreamError, lambda: _run(config, _DAY + 2), "another stream went on in these releases")


def _two_handles(config: Config) -> None:
    """Two handles on one state."""
    with durable(config.state, config.stream()) as one:
        _expect(PhdstreamError, lambda: durable(config.state, config.stream()), "two handles were open at a time")
    _expect(PhdstreamError, one.update, "a handle that was closed went on")


def _a_file_twice(config: Config) -> None:
    """A file that was counted comes again under another name."""
    shutil.copy(config.state.parent / "0.csv", config.state.parent / "9.csv")
    _expect(PhdstreamError, lambda: _run(config, _DAY + 1), "a file was counted twice")


def _an_altered_file(config: Config) -> None:
    """A row that was counted gets a later time."""
    path = config.state.parent / "0.csv"
    head, first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([head, first.replace(first[:10], "2024-03-04"), *rest]) + "\n")
    _expect(PhdstreamError, lambda: _run(config, _DAY + 2), "an event was counted in two ticks")


def _other_settings(config: Config) -> None:
    """Later files come with another column for the user, or with another promise."""
    for counted in config.input.files():
        Path(str(counted)).unlink()
    (config.state.parent / "8.csv").write_text("time,lon,lat,sign,who\n2024-03-04 12:00:00,5.0,45.0,1,u1\n")
    path = config.state.parent / "stream.toml"
    text = path.read_text()
    for old, new in (
        ('user = "who"', 'user = "sign"'),
        ("epsilon = 1.0", "epsilon = 2.0"),
        ('every = "1d"', 'every = "2d"'),
    ):
        path.write_text(text.replace(old, new))
        _expect(PhdstreamError, lambda: _run(config, _DAY + 2), f"{old} became {new} on the way")
    path.write_text(text)


def _a_changed_release(config: Config) -> None:
    """A published file is replaced by another."""
    path = config.releases / "cells" / "tick-00002.parquet"
    changed = pq.read_table(path).slice(1)
    pq.write_table(changed, path)
    (config.releases / "points" / path.name).unlink()
    _expect(PhdstreamError, lambda: _run(config, _DAY + 1), "a tick got a second content", may_go_on=True)
    if not pq.read_table(path).equals(changed):
        raise Violation("a published file was written anew")


def _a_tick_that_failed(config: Config) -> None:
    """A tick fails after its noise was drawn, and is tried again."""
    stream = config.stream()
    with patch.object(stream_module, "metadata", side_effect=_CrashError):
        _expect(_CrashError, lambda: stream.update([(5.0, 45.0)], users=["u1"]), "the crash was swallowed")
    again = lambda: stream.update([(5.0, 45.0)], users=["u1"])  # noqa: E731
    _expect(PhdstreamError, again, "a tick whose noise was drawn is counted again, with other noise")


def _go_on(config: Config) -> None:
    """Nothing happens."""
    inputs = _digests(config)
    _run(config, _DAY + 2)
    _agree(config)
    _check_bounds(config)
    if _digests(config) != inputs:
        raise Violation("input files were changed")


_MISHAPS: tuple[Callable[[Config], None], ...] = (
    _go_on, _crash_after_the_commit, _crash_before_the_commit, _an_older_state, _a_whole_backup, _another_state,
    _two_handles, _a_file_twice, _an_altered_file, _other_settings, _a_changed_release, _a_tick_that_failed,
)  # fmt: skip


class _CrashError(BaseException):
    """As a killed process would end, as far as the disk can tell."""


def _expect(error: type[BaseException], act: Callable[[], object], otherwise: str, may_go_on: bool = False) -> None:
    try:
        act()
    except error:
        return
    if not may_go_on:
        raise Violation(otherwise)


def _released(config: Config) -> tuple[int, Arrays]:
    """Return the tick of the committed state, and the release in it."""
    meta, arrays = read_state(config.state / "state.npz")
    return meta["tick"], unnest("release", arrays)


def _check_published(config: Config, committed: tuple[int, Arrays]) -> None:
    """Check that what was published is what was committed before the crash."""
    tick, release = committed
    now, again = _released(config)
    same = now == tick and release.keys() == again.keys()
    if not same or any(
        not np.array_equal(release[n], again[n], equal_nan=release[n].dtype.kind == "f") for n in release
    ):
        raise Violation("a tick that was committed before a crash was drawn anew after it")
    _agree(config)
    points = pq.read_table(config.releases / "points" / f"tick-{tick:05d}.parquet").num_rows
    if points != int(release["points"][release["leaf"]].sum()):
        raise Violation("another release was published after a crash than the one that was committed")


def _agree(config: Config) -> list[str]:
    """Check that state, marker, manifest and files are of one stream and one tick; return what was looked at."""
    content = (config.state / "state.npz").read_bytes()
    meta, arrays = read_state(config.state / "state.npz")
    marker = Marker.decode((config.state / "committed").read_bytes(), config.state / "committed")
    if (marker.stream, marker.tick, marker.digest) != (meta["id"], meta["tick"], hashlib.sha256(content).hexdigest()):
        raise Violation("the state is not the one that was committed last")
    manifest = json.loads((config.releases / "manifest.json").read_text())
    if (manifest["stream"], manifest["last_tick"]) != (meta["id"], meta["tick"]):
        raise Violation("the manifest is of another stream or tick than the state")
    if manifest["epsilon"] != config.epsilon or manifest["unit"] != config.unit.to_dict():
        raise Violation("the manifest states another promise than the configuration")
    ending = FORMATS[config.format]
    for part in ("cells", "points"):
        there = {path.name for path in (config.releases / part).iterdir()}
        wanted = {f"tick-{tick:05d}{ending}" for tick in range(manifest["first_tick"], meta["tick"] + 1)}
        if there != wanted:
            raise Violation(f"{part} has other ticks than were released")
    _check_spent(arrays)
    return ["the state is the latest, the manifest is of it, every released tick has its files, nothing is overspent"]


def _check_spent(arrays: Arrays) -> None:
    """Check that no events at rest have spent more than they may."""
    for name in (name for name in arrays if name.endswith("account")):
        amounts = [Fraction(str(amount)) for amount in arrays[name].tolist()]
        if any(spent > limit for limit, spent in zip(amounts[::2], amounts[1::2], strict=True)):
            raise Violation("events at rest have spent more than they may")


def _check_bounds(config: Config) -> None:
    """Check that no user is above their bound."""
    _, arrays = read_state(config.state / "state.npz")
    if isinstance(config.unit, User):
        for kind, limit in (("insert", config.unit.inserts), ("delete", config.unit.deletes)):
            used = arrays[f"intake.{kind}_used"]
            if used.size and used.max() > limit:
                raise Violation("a user is above their bound")


def _digests(config: Config) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in config.input.files()
        if isinstance(path, Path)
    }


def _yours(finding: Finding, config: Config) -> None:
    """Look at the operator's own folders; nothing is written, and nothing private is said."""
    if not (config.state / "state.npz").exists():
        finding.notes.append("your stream has not begun, so its folders were not looked at")
        return
    try:
        finding.notes += [f"yours: {line}" for line in _agree(config)]
        _check_bounds(config)
        finding.notes.append(_inputs_unchanged(config))
    except (Violation, PhdstreamError) as error:
        finding.violated(f"your stream: {error if isinstance(error, Violation) else type(error).__name__}")
    except (OSError, KeyError, ValueError) as error:
        finding.violated(f"your stream: its folders cannot be read as a whole ({type(error).__name__})")


def _inputs_unchanged(config: Config) -> str:
    """Check that counted files that are still there are as they were; they may have grown."""
    path = config.state / "inputs.npz"
    if not path.exists():
        return "yours: no files were counted"
    meta, arrays = read_state(path)
    prints = CountedInputs.from_state(meta, arrays).prints
    if len({one.digest for one in prints}) != len(prints) and any(one.size for one in prints):
        raise Violation("a file was counted twice")
    there = [one for one in prints if Path(one.path).exists()]
    same = sum(hashlib.sha256(Path(one.path).read_bytes()).hexdigest() == one.digest for one in there)
    return f"yours: {same} of {len(prints)} counted files are as they were; others are gone, or have grown since"
