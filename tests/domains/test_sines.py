"""Sines by arithmetic alone: as good as a library's, and the same bits everywhere."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from phdstream.domains.shapes.equal_area import to_equal_area
from phdstream.domains.sines import sine_and_cosine

ANGLES = np.concatenate(
    [np.random.default_rng(1).uniform(-180, 180, 20_000), np.arange(-180.0, 181.0), np.nextafter(45.0, [0, 90])]
)


def test_they_are_right() -> None:
    sine, cosine = sine_and_cosine(ANGLES)
    np.testing.assert_allclose(sine, np.sin(np.radians(ANGLES)), rtol=0, atol=5e-16)
    np.testing.assert_allclose(cosine, np.cos(np.radians(ANGLES)), rtol=0, atol=5e-16)
    np.testing.assert_allclose(sine**2 + cosine**2, 1, rtol=1e-15)


def test_right_angles_are_exact() -> None:
    sine, cosine = sine_and_cosine(np.array([-180.0, -90, 0, 90, 180]))
    assert sine.tolist() == [0, -1, 0, 1, 0]
    assert cosine.tolist() == [-1, 0, 1, 0, -1]


def test_the_bits_are_the_same_on_every_machine() -> None:
    """Written down once: a machine that rounds in another way would give a point another code."""
    bits = np.stack(sine_and_cosine(np.arange(-180, 180, 0.37))).tobytes()
    assert hashlib.sha256(bits).hexdigest()[:16] == "4d399ed19381cbf1"
    points = np.stack([np.arange(-180, 180, 0.37), np.linspace(-90, 90, 973)], axis=1)
    assert hashlib.sha256(to_equal_area(points).tobytes()).hexdigest()[:16] == "9e77b3713aa52349"


def test_the_equal_area_map_is_projs() -> None:
    pyproj = pytest.importorskip("pyproj")
    points = np.stack([ANGLES, ANGLES[::-1] / 2], axis=1)
    transformer = pyproj.Transformer.from_crs("EPSG:4326", "ESRI:54034", always_xy=True)
    np.testing.assert_allclose(to_equal_area(points), np.stack(transformer.transform(*points.T), axis=1), atol=1e-7)


def test_what_is_nowhere_is_infinite() -> None:
    nowhere = to_equal_area(np.array([[0.0, 90.1], [np.nan, 0.0], [0.0, np.nan], [np.inf, 0.0]]))
    assert not np.isfinite(nowhere).all(axis=1).any()
