"""
Points on streets
=================

A domain of lines: events are snapped to the nearest street, and synthetic points lie on streets and nowhere else. Here
the streets are a turned grid; a file of lines does as well.
"""

import numpy as np
import shapely

import phdstream as phd

turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
lines = [[(x, -1500), (x, 1500)] for x in range(-1500, 1501, 250)] + [
    [(-1500, y), (1500, y)] for y in range(-1500, 1501, 100)
]
streets = [shapely.LineString(np.array(line) @ turn) for line in lines]
network = phd.Network(streets, snap=40.0)

rng = np.random.default_rng(4)
events = network.sample(np.array([1]), np.array([30_000]), 1)  # evenly on all streets,
events = events[rng.random(len(events)) < np.exp(-np.hypot(*events.T) / 600)]  # then thinned out from the middle

stream = phd.TrackingStream(network, epsilon=1.0, unit=phd.Event())
release = stream.update(events + rng.normal(0, 8, events.shape))
release.plot()

# %%
# Density by street.

release.plot("cells")
