"""Folders of one owner: locks, forks, modes, moves, faults."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phdstream.errors import StateError
from phdstream.streams.durable.locked_folder import LockedFolder
from tests.streams.durable.test_folders import put


class TestOwner:
    def test_one_at_a_time_and_no_lock_file_to_delete(self, tmp_path: Path) -> None:
        folder = LockedFolder(tmp_path / "s", private=True)
        assert folder.created
        assert list((tmp_path / "s").iterdir()) == []
        with pytest.raises(StateError, match="another process"):
            LockedFolder(tmp_path / "s", private=True)
        folder.close()
        folder.close()
        again = LockedFolder(tmp_path / "s", private=True)
        assert not again.created
        again.close(remove_empty=True)
        assert not (tmp_path / "s").exists()

    def test_a_link_to_a_folder_is_that_folder(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir(0o700)
        (tmp_path / "link").symlink_to("real")
        folder = LockedFolder(tmp_path / "link", private=True)
        folder.replace("file", put(b"text"))
        assert (tmp_path / "real" / "file").read_bytes() == b"text"
        with pytest.raises(StateError, match="another process"):
            LockedFolder(tmp_path / "real", private=True)
        (tmp_path / "other").mkdir()
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("other")
        with pytest.raises(StateError, match="no longer the folder"):
            folder.check()
        folder.close()

    def test_closed_moved_deleted_replaced(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "s"
        folder = LockedFolder(path, private=True)
        monkeypatch.chdir("/")
        folder.check()
        path.rename(tmp_path / "t")
        for _ in range(2):
            with pytest.raises(StateError, match="no longer the folder"):
                folder.replace("file", put(b""))
            path.mkdir(0o700) if not path.exists() else None
        assert list(path.iterdir()) == list((tmp_path / "t").iterdir()) == []
        path.rmdir()
        (tmp_path / "t").rename(path)
        folder.check()
        folder.close()
        with pytest.raises(StateError, match="closed"):
            folder.read("file")

    def test_relative_names_outlive_a_change_of_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        folder = LockedFolder(Path("s"), private=True)
        monkeypatch.chdir("/")
        folder.replace("file", put(b"text"))
        folder.close()
        assert (tmp_path / "s" / "file").exists()

    def test_a_forked_child_may_not(self, tmp_path: Path) -> None:
        done = subprocess.run([sys.executable, "-c", _FORK, str(tmp_path / "s")], capture_output=True, text=True)
        assert done.stdout.splitlines() == ["child: forked", "child: another process", "parent: still alone", "free"]

    @pytest.mark.parametrize("mode", [0o777, 0o755, 0o750, 0o701])
    def test_private_means_private(self, tmp_path: Path, mode: int) -> None:
        (tmp_path / "s").mkdir()
        (tmp_path / "s").chmod(mode)
        with pytest.raises(StateError, match=f"chmod 700 '{tmp_path / 's'}'"):
            LockedFolder(tmp_path / "s", private=True)
        LockedFolder(tmp_path / "s", private=False).close()
        (tmp_path / "s").chmod(0o700)
        LockedFolder(tmp_path / "s", private=True).close()

    def test_another_users_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
        with pytest.raises(StateError, match="another user"):
            LockedFolder(tmp_path, private=True)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        LockedFolder(tmp_path, private=True).close()

    def test_a_file_system_without_locks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def cannot(*args: Any) -> None:
            raise OSError(errno.EBADF, "Bad file descriptor")

        monkeypatch.setattr(fcntl, "flock", cannot)
        with pytest.raises(StateError, match="cannot be locked"):
            LockedFolder(tmp_path, private=True)

    def test_removed_between_opening_and_locking(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another process removed its empty folder just then: ours must not be a folder that nobody can find."""
        real, calls = fcntl.flock, [0]

        def lock(handle: int, how: int) -> None:
            calls[0] += 1
            if calls[0] == 1:
                (tmp_path / "s").rmdir()
            real(handle, how)

        monkeypatch.setattr(fcntl, "flock", lock)
        folder = LockedFolder(tmp_path / "s", private=True)
        folder.replace("file", put(b""))
        assert (tmp_path / "s" / "file").exists()
        folder.close()


class TestReading:
    def test_what_is_no_plain_file(self, tmp_path: Path) -> None:
        folder = LockedFolder(tmp_path, private=True)
        (tmp_path / "folder").mkdir()
        (tmp_path / "link").symlink_to("/etc/passwd")
        os.mkfifo(tmp_path / "pipe")
        for name in ("folder", "link", "pipe"):
            with pytest.raises(OSError):  # noqa: PT011 (which one is the system's)
                folder.read(name)
        assert folder.read("nothing") is folder.read("no/thing") is None
        assert folder.stamp("nothing") is None
        assert folder.names("nothing") == []
        folder.remove("nothing")
        (tmp_path / "out").symlink_to("/tmp")
        with pytest.raises(OSError):  # noqa: PT011
            folder.replace("out/file", put(b""))
        folder.close()

    @pytest.mark.parametrize("unnamed", [True, False])
    def test_a_temporary_file_has_no_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool) -> None:
        if not unnamed:
            monkeypatch.delattr(os, "O_TMPFILE", raising=False)
        folder = LockedFolder(tmp_path, private=True)
        with folder.temporary_file() as file:
            file.write(b"private")
            file.seek(0)
            assert file.read() == b"private"
            assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
            assert os.fstat(file.fileno()).st_dev == tmp_path.stat().st_dev
            assert list(tmp_path.iterdir()) == []
        folder.close()


_FORK = """
import os, sys
from pathlib import Path
from phdstream.errors import StateError
from phdstream.streams.durable.locked_folder import LockedFolder
folder = LockedFolder(Path(sys.argv[1]), private=True)
read, write = os.pipe()
if os.fork() == 0:
    again = lambda: LockedFolder(Path(sys.argv[1]), private=True)
    for what, do in (("forked", folder.check), ("another process", again)):
        try:
            do()
        except StateError as error:
            assert what in str(error), error
            print("child:", what, flush=True)
    folder.close(remove_empty=True)
    os._exit(0)
os.wait()
folder.check()
try:
    LockedFolder(Path(sys.argv[1]), private=True)
except StateError:
    print("parent: still alone", flush=True)
if os.fork() == 0:  # a child that lives on must not keep the lock that its parent gave up
    os.read(read, 1)
    os._exit(0)
folder.close()
LockedFolder(Path(sys.argv[1]), private=True).close()
print("free", flush=True)
os.write(write, b"x")
os.wait()
"""
