"""Files that appear whole or not at all, and folders that are safe on the disk.

Whatever is written here is written aside, flushed to the disk and renamed, so that after a crash at any instant a file
is the old one or the new one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

__all__ = ["DIRECTORY", "NEW_FILE", "Writer", "make_folder", "replace_file", "replace_in", "sync_folder"]

Writer = Callable[[IO[bytes]], Any]
"""Writes a file's content."""
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY
"""How a directory is opened."""
NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
"""How a file is opened that must not be there yet, not even as a link."""
_PARENTS = 0o755


def replace_file(path: Path, write: Writer, mode: int = 0o600) -> None:
    """Put a file in place at once and durably: write it aside, flush it to the disk, rename it.

    If writing fails, the old file is untouched and nothing is left behind; after a kill, at most a hidden file that the
    next writing of the same file removes. A link planted under the hidden name is removed, never followed.
    """
    folder = os.open(path.parent, DIRECTORY)
    try:
        replace_in(folder, path.name, write, mode)
    finally:
        os.close(folder)


def replace_in(folder: int, name: str, write: Writer, mode: int) -> None:
    """Put a file in place as `replace_file` does, in a directory that is open."""
    aside = f".{name}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(aside, dir_fd=folder)
    handle = os.open(aside, os.O_WRONLY | NEW_FILE, mode, dir_fd=folder)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside, dir_fd=folder)
        raise


def make_folder(path: Path, mode: int) -> bool:
    """Create a folder and its missing parents, each safe on the disk before the next; tell whether it was missing.

    ``mode`` is the folder's own; parents can be read by all, since they may also come to hold what is public.
    """
    missing: list[Path] = []
    for folder in (path, *path.parents):
        if folder.exists():
            break
        missing.append(folder)
    for folder in reversed(missing):
        try:
            folder.mkdir(mode if folder == path else _PARENTS)
        except FileExistsError:  # another process was quicker, or a link to nowhere is in the way
            if not folder.is_dir():
                raise
        sync_folder(folder.parent)
    return bool(missing)


def sync_folder(folder: Path) -> None:
    """Let what was made, renamed or removed in a folder be safe on the disk."""
    handle = os.open(folder, DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
