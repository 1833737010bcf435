"""Files that appear whole: symlinks, modes, faults."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from phdstream.streams.durable.folders import make_folder, replace_file


def put(text: bytes) -> Any:
    return lambda file: file.write(text)


class TestFiles:
    def test_a_planted_link_is_never_followed(self, tmp_path: Path) -> None:
        """The temporary's name is known, and a link planted there had its target overwritten."""
        victim, target = tmp_path / "victim", tmp_path / "file"
        victim.write_text("precious")
        (tmp_path / ".file.tmp").symlink_to(victim)
        replace_file(target, put(b"new"))
        assert (victim.read_text(), target.read_bytes()) == ("precious", b"new")
        target.unlink()
        target.symlink_to(victim)
        replace_file(target, put(b"newer"))
        assert victim.read_text() == "precious"
        assert not target.is_symlink()

    def test_a_leftover_is_replaced_with_the_right_mode(self, tmp_path: Path) -> None:
        (tmp_path / ".file.tmp").write_text("from a killed process, and much longer")
        (tmp_path / ".file.tmp").chmod(0o666)
        replace_file(tmp_path / "file", put(b"new"))
        assert (tmp_path / "file").read_bytes() == b"new"
        assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    @pytest.mark.parametrize("call", ["fsync", "replace", "open"])
    def test_a_failure_leaves_the_old_or_the_new_and_nothing_beside(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        replace_file(tmp_path / "file", put(b"old"))
        real, calls = getattr(os, call), [0]
        for failing in range(1, 4):
            calls[0] = 0

            def fail(*args: Any, failing: int = failing, **kwargs: Any) -> Any:
                calls[0] += 1
                if calls[0] == failing:
                    raise OSError(errno.EIO, "Input/output error")
                return real(*args, **kwargs)

            with monkeypatch.context() as patch:
                patch.setattr(os, call, fail)
                try:
                    replace_file(tmp_path / "file", put(b"new"))
                except OSError:
                    assert (tmp_path / "file").read_bytes() in (b"old", b"new")
            assert [path.name for path in tmp_path.iterdir()] == ["file"]

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to tell what a handle is of")
    def test_each_parent_of_a_new_folder_is_on_the_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        synced: list[str] = []
        real = os.fsync

        def note(handle: int) -> None:
            synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
            real(handle)

        monkeypatch.setattr(os, "fsync", note)
        assert make_folder(tmp_path / "a" / "b" / "c", 0o700)
        assert synced == [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]
        assert [(tmp_path / p).stat().st_mode & 0o777 for p in ("a", "a/b", "a/b/c")] == [0o755, 0o755, 0o700]
        assert not make_folder(tmp_path / "a" / "b" / "c", 0o700)
        (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
        with pytest.raises(FileExistsError):
            make_folder(tmp_path / "nowhere", 0o700)
