"""What `benchmarks/geography.py` measures and draws, on invented points; and that its maps are in the docs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely
from benchmarks.drawn_maps import Panel, draw_maps
from benchmarks.geography import FIGURES, METHODS, VIEWS, Place, ratios

import phdstream as phd

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")

ISLAND = shapely.Polygon([(4, 50), (6, 50), (6, 51), (5, 51), (5, 52), (4, 52)])


@pytest.mark.parametrize("method", METHODS)
def test_ratios_are_of_ticks_in_turn(method: str) -> None:
    events = np.random.default_rng(1).uniform((4, 50), (6, 52), (500, 2))
    place = Place(
        "an island", events, lambda **fine: phd.Region(ISLAND, crs="EPSG:4326", **fine),
        lambda **fine: phd.Box([(4, 6), (50, 52)], crs="EPSG:4326", **fine),
    )  # fmt: skip
    first, later, cached = ratios(place, METHODS[method], ticks=3, size=400, depth=10)
    assert 0 < cached < 1000
    assert 0 < later < 1000
    assert 0 < first < 1000


def test_a_map_shows_points_where_they_are(tmp_path: Path) -> None:
    corner, window = np.random.default_rng(1).uniform((4.2, 50.2), (4.4, 50.4), (3000, 2)), (4.0, 50.0, 6.0, 52.0)
    domain = phd.Region(ISLAND, crs="EPSG:4326", depth=10)
    panels = [Panel("an island", window)]
    draw_maps(tmp_path / "map.png", domain, {"none": corner[:0], "many": corner}, panels)
    with Image.open(tmp_path / "map.png") as picture:
        red, _, blue = np.moveaxis(np.asarray(picture.convert("RGB")).astype(int), 2, 0)
    row, column = np.argwhere(blue - red > 60).T
    assert len(row) > 0
    assert row.min() > 0.5 * red.shape[0]  # in the south
    assert (column > 0.5 * red.shape[1]).all()  # of the map on the right
    assert (column < 0.7 * red.shape[1]).all()  # in the west


@pytest.mark.parametrize("name", VIEWS)
def test_the_maps_are_in_the_docs_and_small(name: str) -> None:
    picture = FIGURES / f"map-{name}.png"
    assert f"figures/{picture.name}" in (FIGURES.parent / "geography.md").read_text(encoding="utf-8")
    assert picture.stat().st_size < 150_000
    with Image.open(picture) as image:
        assert image.mode == "P"
