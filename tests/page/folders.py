"""Folders of releases to make pages of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import phdstream as phd
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.release import Release

CITY = phd.Box([(-74.03, -73.90), (40.69, 40.89)], names=("lon", "lat"), crs="EPSG:4326")
HOSTILE = "<img src=x onerror=alert(1)></script>"
DAILY = {"ticks": {"start": "2024-04-01T00:00:00+00:00", "every_seconds": 86400.0}}


def city_points(rng: np.random.Generator, number: int) -> Any:
    return np.concatenate(
        [
            rng.normal((-73.98, 40.75), (0.012, 0.02), (number, 2)),
            rng.normal((-73.955, 40.785), 0.006, (number // 3, 2)),
        ]
    )


def city_releases(
    ticks: int = 6, number: int = 900, method: Any = phd.TrackingStream, domain: phd.Domain = CITY, **more: Any
) -> list[Release]:
    stream = method(domain, 1.0, phd.Event(), **({"noise": phd.Simulation(seed=5)} | more))
    rng = np.random.default_rng(1)
    return [stream.update(city_points(rng, number)) for _ in range(ticks)]


def write_folder(path: Path, releases: list[Release], extra: dict[str, Any] | None = None) -> Path:
    with ReleaseFolder(path, "0" * 32, DAILY if extra is None else extra) as folder:
        for release in releases:
            folder.publish(release)
    return path


def write_layer(path: Path) -> Path:
    park = [[-73.9819, 40.7681], [-73.9730, 40.7644], [-73.9493, 40.7968], [-73.9580, 40.8003], [-73.9819, 40.7681]]
    square = [[-74.01, 40.72], [-73.99, 40.72], [-73.99, 40.74], [-74.01, 40.74], [-74.01, 40.72]]
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for name, ring in (("The park", park), (HOSTILE, square))
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path
