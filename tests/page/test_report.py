"""`phdstream report`: one file, complete, small, and with nothing in it but what was released."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains.network import Network
from phdstream.domains.region import Region
from phdstream.errors import InputError
from phdstream.io.archive import open_archive
from phdstream.page import write_report
from phdstream.page.document import joined_modules, texts
from phdstream.page.quantise import NEVER, Frame, encode_lifetimes
from tests.app.commands import phdstream
from tests.page.folders import CITY, HOSTILE, city_releases, write_folder, write_layer


def content_of(page: str) -> bytes:
    found = re.search(r'id="content">([^<]*)<', page)
    assert found
    return gzip.decompress(base64.b64decode(found[1]))


def head_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="head">([^<]*)<', page)
    assert found
    return dict(json.loads(found[1]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("report") / "releases", city_releases(4))


def test_the_command(folder: Path, tmp_path: Path) -> None:
    layer = write_layer(tmp_path / "wards.geojson")
    done = phdstream("report", str(folder), "--layer", str(layer), "--title", "A <b>city</b>", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    head = head_of(page)
    assert [one["label"] for one in head["ticks"]][-1] == "2024-04-04"
    assert "<b>city" not in page
    assert HOSTILE not in page
    assert head["layer"]["areas"][1]["name"] == HOSTILE
    assert head["simulated"]


def test_nothing_is_loaded_from_outside(folder: Path, tmp_path: Path) -> None:
    page = write_report(folder, tmp_path / "page.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert "default-src &#x27;none&#x27;" in policy[1]
    assert "connect-src &#x27;none&#x27;" in policy[1]
    assert "unsafe" not in policy[1]
    outside = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=[\"']?(?!#)[^\"' >]", outside)
    assert not re.search(r"url\(", page.partition("</style>")[0])


def test_no_private_byte_is_in_it(tmp_path: Path) -> None:
    """Points that were put in, at places nobody would guess, are not in the file: as numbers, texts or bytes."""
    rng = np.random.default_rng(9)
    planted = rng.uniform((-74.02, 40.70), (-73.91, 40.88), (300, 2))
    stream = phd.TrackingStream(CITY, 1.0, phd.Event(), noise=phd.Simulation(seed=2))
    made = [stream.update(planted[:200]), stream.update(planted[200:], planted[:50])]
    page = write_report(write_folder(tmp_path / "r", made), tmp_path / "page.html").read_text()
    content, keys = content_of(page), Frame.of(CITY).keys(planted)
    for x, y in planted.tolist():
        for digits in (4, 5, 6):
            assert f"{x:.{digits}f},{y:.{digits}f}" not in page.replace(" ", "")
        assert f"{x:.7f}" not in page
        assert f"{y:.7f}" not in page
        for form in ("<f8", "<f4"):
            assert np.array([x, y], form).tobytes() not in content
    kept = np.unique(_keys(content))
    by_chance = len(kept) * len(keys) / 65536**2
    assert np.isin(keys, kept).sum() <= 1 + 10 * by_chance


def _keys(content: bytes) -> Any:
    size = int.from_bytes(content[:4], "little")
    block = content[4 : 4 + size]
    n, ticks = np.frombuffer(block[:8], "<u4")
    planes = np.frombuffer(block[8 + 4 * ticks :], np.uint8).reshape(6, n).astype(np.uint32)
    x = np.cumsum(planes[0] << 8 | planes[1]) & 0xFFFF
    return (x << 16) | planes[2] << 8 | planes[3]


def test_a_point_that_stays_is_stored_once() -> None:
    rng = np.random.default_rng(3)
    ticks = [rng.integers(0, 2**32, 500, dtype=np.uint32)]
    for _ in range(5):
        ticks.append(np.concatenate([rng.permutation(ticks[-1])[:480], rng.choice(ticks[-1], 9)]).astype(np.uint32))
    block = encode_lifetimes(ticks)
    n, number = np.frombuffer(block[:8], "<u4")
    born = np.frombuffer(block[8 : 8 + 4 * number], "<u4")
    planes = np.frombuffer(block[8 + 4 * number :], np.uint8).reshape(6, n).astype(np.uint32)
    key = (np.cumsum(planes[0] << 8 | planes[1]) & 0xFFFF) << 16 | planes[2] << 8 | planes[3]
    birth, death = np.repeat(np.arange(number), born), planes[4] << 8 | planes[5]
    for tick, points in enumerate(ticks):
        here = key[(birth <= tick) & (death > tick)]
        np.testing.assert_array_equal(np.sort(here), np.sort(points))
    assert n < 600
    assert (death == NEVER).sum() == len(ticks[-1])


@pytest.mark.parametrize(
    "domain",
    [
        Region(shapely.Point(-73.96, 40.78).buffer(0.1), names=("lon", "lat")),
        Network([shapely.LineString([(-74.0, 40.70), (-73.95, 40.80), (-73.93, 40.85)])], names=("lon", "lat"), snap=9),
        phd.Globe(depth=14),
    ],
    ids=["region", "network", "globe"],
)
def test_other_domains(tmp_path: Path, domain: phd.Domain) -> None:
    folder = write_folder(tmp_path / "r", city_releases(2, 300, domain=domain))
    assert open_archive(folder).domain.to_dict() == domain.to_dict()
    page = write_report(folder, tmp_path / "page.html", write_layer(tmp_path / "wards.geojson")).read_text()
    assert head_of(page)["levels"] is None


class TestWhatCannotBeShown:
    def test_no_folder_of_releases(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no folder of releases"):
            write_report(tmp_path, tmp_path / "page.html")

    def test_places_without_coordinates(self, tmp_path: Path) -> None:
        places = phd.Hierarchy(["a/x", "a/y", "b/z"])
        stream = phd.TrackingStream(places, 1.0, phd.Event(), noise=phd.Simulation(seed=1))
        folder = write_folder(tmp_path / "r", [stream.update(["a/x"] * 50)])
        with pytest.raises(InputError, match="two coordinates"):
            write_report(folder, tmp_path / "page.html")

    def test_an_older_folder(self, folder: Path, tmp_path: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        assert open_archive(tmp_path).domain.to_dict() == CITY.to_dict()
        (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"domain": {"type": "region"}}))
        with pytest.raises(InputError, match="in short only"):
            open_archive(tmp_path)

    @pytest.mark.parametrize("tiles", ["javascript:alert(1)", "tiles/{z}"])
    def test_tiles_from_nowhere(self, folder: Path, tmp_path: Path, tiles: str) -> None:
        with pytest.raises(InputError, match="source of tiles"):
            write_report(folder, tmp_path / "page.html", tiles=tiles)


def test_every_text_is_used_and_every_word_is_a_text() -> None:
    used = joined_modules() + (Path(__file__).parents[2] / "src/phdstream/page/page.html").read_text()
    built = ("unit_", "thing_", "size_", "legend_", "show_", "every_", "draw_", "download_")
    for key in texts():
        assert f'"{key}"' in used or f"{key}:" in used or key.startswith(built) or f"offers.{key} " in used, key
    for key in re.findall(r'say\("(\w+)"', used):
        assert key in texts(), key
