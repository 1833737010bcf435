"""
Ticks side by side
==================

A crowd moves through a town. Each tick is released with the same ε over the whole stream; records live for three ticks
and expire at no cost.
"""

import tempfile
from pathlib import Path

import numpy as np
import shapely

import phdstream as phd
from phdstream.io.sinks.folder import ReleaseFolder

town = phd.Box([(0, 12), (0, 8)], names=("east", "north"))
stream = phd.TrackingStream(town, epsilon=1.0, unit=phd.Event(), window=3)
rng = np.random.default_rng(3)

folder = Path(tempfile.mkdtemp()) / "releases"
schedule = {"ticks": {"start": "2026-06-01T08:00:00+00:00", "every_seconds": 3600.0}}
with ReleaseFolder(folder, "0" * 32, schedule) as out:  # `phdstream run` does this from files
    for hour in range(8):
        middle = (2 + hour, 4 + 2 * np.sin(hour / 2))
        out.publish(stream.update(rng.normal(middle, 0.7, (1500, 2))))

releases = phd.read_releases(folder)
releases[1::2].plot("points")

# %%
# Counts over time in two halves of the town, with their intervals.

west, east = shapely.box(0, 0, 6, 8), shapely.box(6, 0, 12, 8)
releases.plot(areas=[west, east])

# %%
# What came and went in the last hour.

releases[-1].plot("changes")
