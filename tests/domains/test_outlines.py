"""The packaged outlines: sound, where they should be, equal to their originals, in the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains.outlines import land, new_york_state

SHARED = Path(__file__).parents[3] / "shared" / "data"


class TestOutlines:
    @pytest.mark.parametrize("shape", [land(), new_york_state()])
    def test_they_are_sound(self, shape: Any) -> None:
        assert shape.geom_type == "MultiPolygon"
        assert shape.is_valid

    def test_where_they_are(self) -> None:
        assert land().contains(shapely.Point(2.35, 48.86))
        assert not land().intersects(shapely.Point(0, -85))
        assert new_york_state().contains(shapely.Point(-73.98, 40.75))
        assert not new_york_state().contains(shapely.Point(-74.3, 40.3))

    @pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
    def test_they_are_the_originals(self) -> None:
        names = {
            "land_naturalearth_lowres_without_antarctica": land(),
            "new_york_state_500k": new_york_state(),
        }
        for name, shape in names.items():
            (original,) = shapely.get_parts(shapely.from_geojson((SHARED / "geometry" / f"{name}.geojson").read_text()))
            assert shapely.equals_exact(original, shape)

    def test_domains_take_them(self) -> None:
        state = phd.Region(new_york_state(), crs="EPSG:4326", depth=8)
        _, inside = state.encode(np.array([[-73.98, 40.75], [-74.3, 40.3]]))
        assert inside.tolist() == [True, False]
