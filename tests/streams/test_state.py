"""State files: as they were written, or refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import phdstream as phd
from phdstream.errors import StateError
from phdstream.streams.durable.commits import Marker
from phdstream.streams.state import FORMAT, decode_state, encode_state, nest, read_state, unnest, write_state

META = {"tick": 3, "name": "é"}
ARRAYS = {"a": np.arange(7), "b.c": np.zeros((2, 0)), "text": np.array(["x", "yz"])}
PATH = Path("some/state.npz")


def test_there_and_back(tmp_path: Path) -> None:
    write_state(tmp_path / "s", META, ARRAYS)
    meta, arrays = read_state(tmp_path / "s")
    assert meta == META
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert (tmp_path / "s").read_bytes().startswith(f"phdstream-state {FORMAT} ".encode())


def test_every_flipped_bit_is_noticed() -> None:
    """227 of 2,824 flips in headers of arrays loaded another state, with users cut off whose bounds began anew."""
    content = encode_state(META, ARRAYS)
    for place in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            with pytest.raises(StateError, match=r"state\.npz"):
                decode_state(bytes(damaged), PATH)


def test_flipped_bits_in_the_state_of_a_stream(tmp_path: Path) -> None:
    stream = phd.PHDStream(phd.Box([(0, 1)], depth=4), 1.0, phd.User(2), noise=phd.Simulation(1))
    stream.update(np.full((5, 1), 0.5), users=["ann", "ann", "ann", "bob", "eve"])
    path = tmp_path / "state.npz"
    stream.save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(1)
    for place in rng.integers(0, len(content), 300):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        with pytest.raises(StateError):
            phd.PHDStream.load(path)


def test_every_lost_or_added_byte_is_noticed() -> None:
    content = encode_state(META, ARRAYS)
    for place in range(len(content)):
        for damaged in (
            content[:place],
            content[:place] + content[place + 1 :],
            content[:place] + b"\0" + content[place:],
        ):
            with pytest.raises(StateError, match=r"state\.npz"):
                decode_state(damaged, PATH)
    with pytest.raises(StateError):
        decode_state(content + b"\n", PATH)


def test_another_version_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "old.npz", meta=np.zeros(3, np.uint8))
    with pytest.raises(StateError, match="not a whole phdstream state"):
        read_state(tmp_path / "old.npz")
    content, own = encode_state(META, ARRAYS), f"state {FORMAT}".encode()
    assert own in content
    with pytest.raises(StateError, match=f"format {FORMAT - 1}, this version reads {FORMAT}"):
        decode_state(content.replace(own, f"state {FORMAT - 1}".encode(), 1), PATH)


@pytest.mark.parametrize("text", ["[1]", "3", "{", "[" * 100_000])
def test_a_whole_file_that_is_no_state(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(json, "dumps", lambda meta: text)
        content = encode_state(META, ARRAYS)
    with pytest.raises(StateError, match="not a whole"):
        decode_state(content, PATH)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no saved state"):
        read_state(tmp_path / "nothing")
    with pytest.raises(StateError, match="cannot be read"):
        read_state(tmp_path)


def test_every_damage_of_a_marker_is_noticed() -> None:
    marker = Marker("0123456789abcdef" * 2, 12, "f" * 64)
    content = marker.encode()
    assert Marker.decode(content, Path("committed")) == marker
    for place in range(len(content)):
        flips = [content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :] for bit in range(8)]
        for damaged in (*flips, content[:place], content[:place] + content[place + 1 :]):
            with pytest.raises(StateError, match="committed is damaged"):
                Marker.decode(damaged, Path("committed"))
    for damaged in (b"", b"3", b"-3\n", content * 2, Marker(marker.stream, -3, marker.digest).encode()):
        with pytest.raises(StateError, match="committed is damaged"):
            Marker.decode(damaged, Path("committed"))


def test_nesting() -> None:
    nested = nest("a", {"b": np.zeros(1)}) | nest("ab", {"c": np.zeros(1)})
    assert list(unnest("a", nested)) == ["b"]
