"""A folder of releases: one stream, one process, and one content for every tick."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import phdstream as phd
from phdstream.errors import InputError, StateError
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.io.sinks.writers import FORMATS
from phdstream.release import Release
from phdstream.streams.durable.locked_folder import LockedFolder
from tests.thorough import cases
from tests.waiting import wait_for_ticks

MARK = "simulated, not private"
ROOT = Path(__file__).parents[3]
ID, OTHER = "a" * 32, "b" * 32
BOX = phd.Box([(0, 10), (40, 50)], names=("lon", "lat"), depth=8)


def releases(ticks: int = 1, seed: int = 3, domain: Any = BOX, points: Any = None) -> list[Release]:
    points = np.random.default_rng(1).normal((5, 45), 1, (800, 2)) if points is None else points
    stream = phd.PHDStream(domain, epsilon=2.0, unit=phd.Event(), noise=phd.Simulation(seed=seed))
    return [stream.update(points) for _ in range(ticks)]


def publish(path: Path, made: list[Release], stream: str = ID, form: str = "parquet") -> None:
    with ReleaseFolder(path, stream, {}, form).open(made[0].tick - 1) as folder:
        for release in made:
            folder.publish(release)


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


class TestWhatIsWritten:
    @pytest.mark.parametrize(("form", "ending"), FORMATS.items())
    def test_each_format(self, tmp_path: Path, form: str, ending: str) -> None:
        publish(tmp_path, releases(), form=form)
        assert [p.name for p in sorted((tmp_path / "points").iterdir())] == [f"tick-00001{ending}"]
        assert [p.name for p in sorted((tmp_path / "cells").iterdir())] == [f"tick-00001{ending}"]
        manifest = json.loads((tmp_path / "manifest.json").read_text())
        assert (manifest["format"], manifest["stream"], manifest["last_tick"]) == (form, ID, 1)
        assert MARK in manifest["privacy"]
        claim = {"product": "phdstream", "stream": ID, "format": form, "first_tick": 1}
        assert json.loads((tmp_path / "stream.json").read_text()) == claim

    def test_plain_parquet_stays_plain(self, tmp_path: Path) -> None:
        publish(tmp_path, releases())
        schema = pq.read_schema(tmp_path / "points" / "tick-00001.parquet")
        assert schema.names == ["tick", "lon", "lat"]
        assert b"geo" not in schema.metadata
        assert MARK in schema.metadata[b"privacy"].decode()

    def test_places_of_a_hierarchy(self, tmp_path: Path) -> None:
        pd = pytest.importorskip("pandas")
        places = phd.Hierarchy({"US": ["Bellevue", "Harlem"], "FR": ["Necker"]})
        publish(tmp_path, releases(domain=places, points=["Harlem"] * 200 + ["Necker"] * 100), form="csv")
        assert "US/Harlem" in set(pd.read_csv(tmp_path / "points" / "tick-00001.csv")["place"])

    def test_it_is_for_all_to_read(self, tmp_path: Path) -> None:
        publish(tmp_path / "a" / "out", releases())
        for path in (tmp_path / "a").rglob("*"):
            assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)

    def test_ticks_are_told_to_be_missing(self, tmp_path: Path) -> None:
        made = releases(5)
        publish(tmp_path, made)
        (tmp_path / "cells" / "tick-00002.parquet").unlink()
        (tmp_path / "points" / "tick-00005.parquet").unlink()
        with ReleaseFolder(tmp_path, ID, {}).open(5) as folder:
            assert folder.last_tick == 5
            assert folder.missing(5, 1) == [2, 5]
            assert folder.missing(5, 3) == [5]
            folder.publish(made[4])
            assert folder.missing(5) == [2]
            with pytest.raises(StateError, match=r"tick-00002\.parquet, which was taken away, is not written again"):
                folder.publish(made[1])


class TestWhoseItIs:
    def test_two_streams_do_not_share_a_folder(self, tmp_path: Path) -> None:
        """11 of 80 files had two contents, and the manifest stated the ε of one for both."""
        publish(tmp_path, releases(3))
        before = contents(tmp_path)
        for tick in (0, 3, 9):
            with pytest.raises(StateError, match="releases up to tick 3 of another stream"):
                ReleaseFolder(tmp_path, OTHER, {}).open(tick)
        assert contents(tmp_path) == before

    def test_nor_at_the_same_time(self, tmp_path: Path) -> None:
        with ReleaseFolder(tmp_path, ID, {}), pytest.raises(StateError, match="another process"):
            ReleaseFolder(tmp_path, ID, {}).open()
        ReleaseFolder(tmp_path, ID, {}).open().close()

    def test_a_claim_of_a_stream_that_has_begun_binds(self, tmp_path: Path) -> None:
        """It may have stopped between the commit and the publication of its first tick."""
        with ReleaseFolder(tmp_path, ID, {}, "csv").open() as folder:
            folder.bind()
        with pytest.raises(StateError, match="belongs to another stream"):
            ReleaseFolder(tmp_path, OTHER, {}, "csv").open()
        publish(tmp_path, releases())  # the first one still may
        assert json.loads((tmp_path / "stream.json").read_text())["begun"] is True

    def test_a_claim_without_releases_does_not_bind(self, tmp_path: Path) -> None:
        ReleaseFolder(tmp_path, OTHER, {}, "csv").open().close()
        publish(tmp_path, releases())
        with pytest.raises(StateError, match="another stream"):
            ReleaseFolder(tmp_path, OTHER, {}, "csv").open()

    def test_another_format(self, tmp_path: Path) -> None:
        publish(tmp_path, releases())
        with pytest.raises(StateError, match="begun with format 'parquet', but 'csv'"):
            ReleaseFolder(tmp_path, ID, {}, "csv").open(1)

    def test_files_of_unknown_origin(self, tmp_path: Path) -> None:
        publish(tmp_path, releases())
        (tmp_path / "stream.json").unlink()
        for also in ("manifest.json", "cells/tick-00001.parquet"):
            with pytest.raises(StateError, match=r"no stream\.json that says of which stream"):
                ReleaseFolder(tmp_path, ID, {}).open(1)
            (tmp_path / also).unlink()

    def test_a_stream_that_has_released_elsewhere(self, tmp_path: Path) -> None:
        made = releases(7)
        with pytest.raises(StateError, match=r"released ticks up to 5, but .* has none of them"):
            ReleaseFolder(tmp_path, ID, {}).open(5)
        assert not (tmp_path / "stream.json").exists()
        with ReleaseFolder(tmp_path, ID, {}).open(5, new_folder=True) as folder:
            assert folder.first_tick == 5
            assert folder.missing(5) == [5]
        with ReleaseFolder(tmp_path, ID, {}).open(5) as folder:  # a crash before anything was published
            folder.publish(made[4])
            folder.publish(made[5])
        with ReleaseFolder(tmp_path, ID, {}).open(6) as folder:
            assert (folder.first_tick, folder.missing(6)) == (5, [])
        assert json.loads((tmp_path / "manifest.json").read_text())["first_tick"] == 5

    def test_the_first_release_may_be_missing_after_a_crash(self, tmp_path: Path) -> None:
        ReleaseFolder(tmp_path, ID, {}, first_tick=3).open().close()
        with ReleaseFolder(tmp_path, ID, {}, first_tick=3).open(3) as folder:
            assert folder.missing(3, 3) == [3]
        with pytest.raises(StateError, match="none of them"):
            ReleaseFolder(tmp_path, ID, {}, first_tick=3).open(4)
        with pytest.raises(StateError, match="none of them"):
            ReleaseFolder(tmp_path, OTHER, {}, first_tick=3).open(3)


class TestNoWayBack:
    @pytest.mark.parametrize("lost", ["set back", "missing", "files only"])
    def test_a_state_that_is_behind(self, tmp_path: Path, lost: str) -> None:
        """Files 7 to 9 were there, manifest and state were set back to 6: they were rewritten with other noise."""
        made = releases(9)
        publish(tmp_path, made[:6])
        manifest = (tmp_path / "manifest.json").read_bytes()
        with ReleaseFolder(tmp_path, ID, {}).open(6) as folder:
            for release in made[6:]:
                folder.publish(release)
        if lost == "set back":
            (tmp_path / "manifest.json").write_bytes(manifest)
        elif lost == "missing":
            (tmp_path / "manifest.json").unlink()
        else:
            (tmp_path / "manifest.json").write_bytes(manifest)
            shutil.rmtree(tmp_path / "points")
        before = contents(tmp_path)
        with pytest.raises(StateError, match="releases up to tick 9, but the state is at tick 6"):
            ReleaseFolder(tmp_path, ID, {}).open(6)
        assert contents(tmp_path) == before

    def test_files_taken_away_count_by_the_manifest(self, tmp_path: Path) -> None:
        publish(tmp_path, releases(3))
        for part in ("points", "cells"):
            shutil.rmtree(tmp_path / part)
        with pytest.raises(StateError, match="up to tick 3, but the state is at tick 2"):
            ReleaseFolder(tmp_path, ID, {}).open(2)

    @pytest.mark.parametrize("form", FORMATS)
    def test_another_content_is_never_put_in_place(self, tmp_path: Path, form: str) -> None:
        publish(tmp_path, releases(), form=form)
        before = contents(tmp_path)
        with ReleaseFolder(tmp_path, ID, {}, form).open(1) as folder:
            with pytest.raises(StateError, match=r"holds another content .* never replaced"):
                folder.publish(releases(seed=4)[0])
            assert contents(tmp_path) == before
            folder.publish(releases()[0])
            assert contents(tmp_path) == before

    def test_the_same_table_by_another_library_is_the_same(self, tmp_path: Path) -> None:
        publish(tmp_path, releases())
        path = tmp_path / "cells" / "tick-00001.parquet"
        pq.write_table(pq.read_table(path), path, compression="gzip")
        before = contents(tmp_path)
        with ReleaseFolder(tmp_path, ID, {}).open(1) as folder:
            folder.publish(releases()[0])
        assert contents(tmp_path) == before
        pq.write_table(pq.read_table(path).replace_schema_metadata({"privacy": "none"}), path)
        with ReleaseFolder(tmp_path, ID, {}).open(1) as folder, pytest.raises(StateError, match="another content"):
            folder.publish(releases()[0])
        path.write_bytes(b"PAR1")
        with ReleaseFolder(tmp_path, ID, {}).open(1) as folder, pytest.raises(StateError, match="another content"):
            folder.publish(releases()[0])

    def test_not_closed_nor_moved(self, tmp_path: Path) -> None:
        made = releases(2)
        folder = ReleaseFolder(tmp_path / "out", ID, {})
        with pytest.raises(StateError, match="not opened"):
            folder.publish(made[0])
        with folder:
            folder.publish(made[0])
            (tmp_path / "out").rename(tmp_path / "old")
            with pytest.raises(StateError, match="no longer the folder"):
                folder.publish(made[1])
        with pytest.raises(StateError, match="closed"):
            folder.publish(made[1])


class TestDamage:
    @pytest.mark.parametrize("name", ["manifest.json", "stream.json"])
    @pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b"3", b"[" * 100_000, b"{}", None])
    def test_json_that_is_not_ours(self, tmp_path: Path, name: str, content: bytes | None) -> None:
        publish(tmp_path, releases(2))
        (tmp_path / name).unlink()
        (tmp_path / name).mkdir() if content is None else (tmp_path / name).write_bytes(content)
        before = contents(tmp_path)
        with pytest.raises(StateError, match=str(tmp_path)):
            ReleaseFolder(tmp_path, ID, {}).open(2)
        assert contents(tmp_path) == before

    @pytest.mark.parametrize("last", [-1, True, 1.5, "2", None])
    def test_a_last_tick_that_is_none(self, tmp_path: Path, last: Any) -> None:
        publish(tmp_path, releases(2))
        manifest = json.loads((tmp_path / "manifest.json").read_text())
        (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"last_tick": last}))
        with pytest.raises(StateError, match=r"manifest\.json is damaged"):
            ReleaseFolder(tmp_path, ID, {}).open(2)

    def test_what_is_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "out").write_text("a file")
        with pytest.raises(InputError, match="cannot be written"):
            ReleaseFolder(tmp_path / "out", ID, {}).open()
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "points").write_text("a file")
        with pytest.raises((InputError, StateError), match=str(tmp_path / "b")):
            ReleaseFolder(tmp_path / "b", ID, {}).open()
        (tmp_path / "c" / "points" / "tick-00001.parquet").mkdir(parents=True)
        with pytest.raises(StateError, match="releases up to tick 1"):
            ReleaseFolder(tmp_path / "c", ID, {}).open()

    def test_leftovers_go_and_strangers_stay(self, tmp_path: Path) -> None:
        publish(tmp_path, releases())
        ours = [".manifest.json.tmp", "points/.tick-00002.parquet.tmp", "cells/.tick-00002.csv.tmp"]
        for name in (*ours, ".mine.tmp"):
            (tmp_path / name).write_text("half")
        ReleaseFolder(tmp_path, ID, {}).open(1).close()
        assert [(tmp_path / name).exists() for name in (*ours, ".mine.tmp")] == [False] * 3 + [True]

    def test_a_planted_link_is_not_followed(self, tmp_path: Path) -> None:
        out, victim = tmp_path / "out", tmp_path / "victim"
        victim.write_text("precious")
        with ReleaseFolder(out, ID, {}) as folder:
            for name in ("points/.tick-00001.parquet.tmp", ".manifest.json.tmp", "cells/.tick-00001.parquet.tmp"):
                (out / name).symlink_to(victim)
            folder.publish(releases()[0])
        assert victim.read_text() == "precious"


class TestFaults:
    @pytest.mark.parametrize("call", range(1, 15))
    @pytest.mark.slow
    def test_a_failure_at_every_write_in_turn(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
        """With the stream: no tick has two contents, and at the end all are there."""
        seen: dict[str, bytes] = {}
        real, calls = LockedFolder.replace, [0]

        def replace(*args: Any) -> None:
            calls[0] += 1
            if calls[0] == call:
                raise OSError(28, "No space left on device")
            real(*args)

        with monkeypatch.context() as patch:
            patch.setattr(LockedFolder, "replace", replace)
            with pytest.raises((StateError, InputError), match="No space left"):
                run(tmp_path, 4)
        seen = {name: data for name, data in contents(tmp_path / "out").items() if "tick-" in name}
        run(tmp_path, 4)
        after = contents(tmp_path / "out")
        assert all(after[name] == data for name, data in seen.items())
        assert len([name for name in after if "tick-" in name]) == 12

    @pytest.mark.slow
    def test_killed_at_random_instants(self, tmp_path: Path) -> None:
        """Many processes at once on one state and one folder, each killed: whatever was published keeps its bits."""
        rng = np.random.default_rng(int.from_bytes(os.urandom(4), "big"))
        seen: dict[str, str] = {}
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{_CHILD}", str(tmp_path)]
        for number in range(cases(3, 20)):
            children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
            for child in children:
                assert child.stdout is not None
                assert child.stdout.readline() == b"ready\n"
            if number % 2:  # on a busy machine they would be killed before they have published anything
                wait_for_ticks(tmp_path / "out", len(seen) + 6)
            time.sleep(float(rng.uniform(0.05, 0.6)))
            for child in children:
                assert child.poll() is None
                child.send_signal(signal.SIGKILL)
                child.communicate()
            found = contents(tmp_path / "out") if (tmp_path / "out").exists() else {}
            now = {name: hashlib.sha256(data).hexdigest() for name, data in found.items() if name.endswith("parquet")}
            assert all(now[name] == digest for name, digest in seen.items())
            seen = now
        assert len(seen) > 4
        run(tmp_path, 1)
        assert not list((tmp_path / "out").rglob("*.tmp"))


def run(folder: Path, ticks: int) -> None:
    """Take ticks up to a number and publish each, going on where an earlier run stopped."""
    asked = phd.PHDStream(BOX, epsilon=2.0, unit=phd.Event())
    with phd.durable(folder / "state", asked) as stream:
        stream.begin()
        with ReleaseFolder(folder / "out", stream.id, {}).open(stream.tick) as out:
            if stream.release is not None:
                out.publish(stream.release)
            while stream.tick < ticks:
                out.publish(stream.update(np.full((50, 2), (5, 45))))
            assert out.missing(ticks) == []


_CHILD = """
import sys, time
from pathlib import Path
from phdstream.errors import StateError
from tests.io.sinks.test_folder import run
print("ready", flush=True)
while True:
    try:
        run(Path(sys.argv[1]), 10**9)
    except StateError as error:
        assert "another process" in str(error), error
        time.sleep(0.01)
"""
