"""A release in a file, as it is: every node with its count and variances, to be asked again. Public.

Points and cells are for people and their tools; this third file is for phdstream: counts of rectangles and polygons
with intervals, and changes from one tick to the next, need what is known of the nodes above the cells. All of it is
computed from noisy counts, and so is the key, a random number that says where synthetic points fall.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from phdstream.domains import Domain
from phdstream.errors import StateError
from phdstream.io.sinks.writers import Encoder
from phdstream.release import Release
from phdstream.release.estimate import Estimate

__all__ = ["encode_estimate", "read_release"]

_HEAD = b"phdstream-release"
_FORMAT = 1
_COLUMNS = tuple(field.name for field in fields(Estimate))


def encode_estimate(release: Release) -> Encoder:
    """Return what writes a release to a Parquet file that `read_release` reads."""
    head = {"format": _FORMAT, "tick": release.tick, "key": str(release.key), "metadata": release.metadata}
    table = pa.table({name: pa.array(getattr(release.estimate, name)) for name in _COLUMNS})
    table = table.replace_schema_metadata({_HEAD: json.dumps(head), b"privacy": release.privacy})

    def write(file: IO[bytes]) -> None:
        pyarrow.parquet.write_table(table, file, compression="zstd", use_dictionary=False)

    return write


def read_release(path: Path, domain: Domain, previous: Release | None = None) -> Release:
    """Return the release in a file; its changes are those since ``previous``, the release of the tick before."""
    try:
        table = pyarrow.parquet.read_table(path, memory_map=False)
        head = json.loads(table.schema.metadata[_HEAD])
        if head["format"] != _FORMAT:
            raise StateError(f"{path} was written by another version of phdstream: read it with that one.")
        columns = {name: table[name].to_numpy() for name in _COLUMNS}
        empty = np.zeros(0, np.int64)
        before = (empty, empty) if previous is None else (previous.leaves, previous.points)
        return Release(domain, head["tick"], Estimate(**columns), int(head["key"]), head["metadata"], *before)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"{path} cannot be read as a release. Put back what was published.") from None
