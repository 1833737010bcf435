"""
A layer with counts
===================

A GeoDataFrame that comes in goes out as one, with the answer beside its own columns; from there on it is GeoPandas.
"""

import geopandas
import numpy as np
import shapely

import phdstream as phd

city = phd.Box([(4.80, 5.00), (52.32, 52.42)], names=("lon", "lat"), crs="EPSG:4326")
rng = np.random.default_rng(6)
crowds = np.repeat([(4.895, 52.37), (4.92, 52.35), (4.86, 52.36)], [5000, 2000, 1500], axis=0)
events = rng.normal(crowds, (0.012, 0.008))
release = phd.TrackingStream(city, epsilon=1.0, unit=phd.Event()).update(events)

middle = shapely.Point(4.91, 52.36)
rings = [middle.buffer(r + 0.01) - middle.buffer(r) for r in np.arange(0, 0.05, 0.01)]
layer = geopandas.GeoDataFrame({"ring": range(5)}, geometry=rings, crs="EPSG:4326")
found = release.count_in(layer)
found.plot("value", cmap="Blues", legend=True, edgecolor="#999999", linewidth=0.4)

# %%
# The same per H3 cell, drawn by GeoPandas.

release.to_h3(8, to="geopandas").plot("value", cmap="Blues", legend=True)

# %%
# And the table:

found.drop(columns="geometry").round(0)
