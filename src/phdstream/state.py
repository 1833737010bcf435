"""State files: plain arrays and JSON in one zip (NumPy's npz), written whole or not at all. No pickle."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from phdstream.errors import StateError

__all__ = ["FORMAT", "Arrays", "nest", "read_state", "replace_file", "unnest", "write_state"]

FORMAT = 1
"""The version of the layout; a file with a newer one is refused."""
Arrays = dict[str, NDArray[Any]]
_META = "meta"


def write_state(path: Path, meta: dict[str, Any], arrays: Arrays) -> None:
    """Write a state so that after a crash at any instant the file is the old one or the new one, whole."""
    header = np.frombuffer(json.dumps(meta | {"format": FORMAT}).encode(), dtype=np.uint8)
    replace_file(path, lambda file: np.savez(file, allow_pickle=False, **({_META: header} | arrays)))


def read_state(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return what `write_state` wrote, or say what is wrong with the file."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as saved:
            arrays = {name: saved[name] for name in saved.files}
        meta: dict[str, Any] = json.loads(arrays.pop(_META).tobytes())
    except FileNotFoundError:
        raise StateError(f"there is no saved state at {path}.") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise StateError(
            f"{path} is not a whole phdstream state ({type(error).__name__}). Restore it from a backup of that tick."
        ) from None
    if meta.get("format") != FORMAT:
        raise StateError(
            f"{path} has format {meta.get('format')}, this version reads {FORMAT}: use the phdstream that wrote it."
        )
    return meta, arrays


def replace_file(path: Path, write: Callable[[IO[bytes]], Any], mode: int = 0o600) -> None:
    """Put a file in place at once and durably: write it aside, flush it to the disk, rename it.

    On any failure the old file is untouched and nothing is left behind; after a kill, at most a hidden file that the
    next writing of the same file replaces.
    """
    aside = path.with_name(f".{path.name}.tmp")
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:  # noqa: PTH123
            write(file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        _sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def nest(prefix: str, arrays: Arrays) -> Arrays:
    """Put a prefix before every name.

    >>> list(nest("node", {"share": np.zeros(1)}))
    ['node.share']
    """
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def unnest(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays under a prefix, without it."""
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(prefix + ".")}
