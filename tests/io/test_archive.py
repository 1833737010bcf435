"""What a folder of releases says when it is asked again is what the releases said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import phdstream as phd
from phdstream.errors import StateError
from phdstream.io.archive import Archive
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.release import Release

BOX = phd.Box([(0, 1), (0, 1)])
ID = "0" * 32


def releases(method: type[phd.TrackingStream | phd.PHDStream]) -> list[Release]:
    stream = method(BOX, epsilon=1.0, unit=phd.Event(), noise=phd.Simulation(seed=3))
    rng = np.random.default_rng(1)
    return [stream.update(rng.random((400, 2)) ** 2) for _ in range(3)]


@pytest.mark.parametrize("method", [phd.TrackingStream, phd.PHDStream])
def test_a_release_read_again_answers_as_it_did(tmp_path: Path, method: type[phd.TrackingStream]) -> None:
    made = releases(method)
    with ReleaseFolder(tmp_path, ID, {}) as folder:
        for release in made:
            folder.publish(release)
    archive = Archive(tmp_path, BOX, kept=1)
    assert archive.last_tick == 3
    for release in [*made, made[0]]:
        again = archive.release(release.tick)
        squares = [[0, 0, 0.5, 0.5], [0.2, 0.1, 0.7, 0.9]]
        for name, value in vars(release.count(squares)).items():
            np.testing.assert_array_equal(getattr(again.count(squares), name), value)
        np.testing.assert_array_equal(again.sample(), release.sample())
        assert again.metadata == release.metadata
        assert again.cells().equals(release.cells())
        np.testing.assert_array_equal(again.changes().inserts, release.changes().inserts)
        np.testing.assert_array_equal(again.changes().deletes, release.changes().deletes)


def test_only_whole_ticks_are_there(tmp_path: Path) -> None:
    archive = Archive(tmp_path, BOX)
    assert archive.last_tick == 0
    assert not archive.has(1)
    with ReleaseFolder(tmp_path, ID, {}) as folder:
        folder.publish(releases(phd.TrackingStream)[0])
    (tmp_path / "estimates" / "tick-00002.parquet").write_bytes(b"half")  # not in the manifest: not there
    assert archive.has(1)
    assert not archive.has(2)
    with pytest.raises(StateError, match="tick 2 has no release"):
        archive.release(2)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    with ReleaseFolder(tmp_path, ID, {}) as folder:
        folder.publish(releases(phd.TrackingStream)[0])
    (tmp_path / "estimates" / "tick-00001.parquet").write_bytes(b"no parquet")
    with pytest.raises(StateError, match="cannot be read as a release"):
        Archive(tmp_path, BOX).release(1)
