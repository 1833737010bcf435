"""
Points on land
==============

A domain of polygons: synthetic points fall on land and never in the sea. The outline of New York State comes with the
package.
"""

import numpy as np

import phdstream as phd
from phdstream.domains.outlines import new_york_state

state = phd.Region([new_york_state()], crs="EPSG:4326", resolution="500 m")
rng = np.random.default_rng(1)
towns = np.array([(-73.95, 40.75), (-73.76, 42.65), (-78.87, 42.89), (-77.61, 43.16), (-76.15, 43.05)])
events = rng.normal(np.repeat(towns, [9000, 1500, 2000, 1500, 1200], axis=0), 0.12)

stream = phd.TrackingStream(state, epsilon=1.0, unit=phd.Event())
release = stream.update(events)
release.plot()

# %%
# Cells are small where many points are. Where the noise would be larger than the count, they stay large.

release.plot("cells")

# %%
# What a notebook shows of a release:

release
