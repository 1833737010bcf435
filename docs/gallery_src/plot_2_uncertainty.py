"""
How sure is it?
===============

Every count has an interval for the true count. Half of it, by the count: place by place, for two ε.
"""

import numpy as np
from matplotlib import pyplot

import phdstream as phd

town = phd.Box([(11.45, 11.70), (48.07, 48.22)], names=("lon", "lat"), crs="EPSG:4326")
events = np.random.default_rng(2).normal((11.575, 48.137), (0.04, 0.025), (12_000, 2))

figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
for epsilon, one in zip((0.2, 2.0), axes, strict=True):
    stream = phd.TrackingStream(town, epsilon, unit=phd.Event())
    stream.update(events).plot("uncertainty", one)
    one.set_title(f"ε = {epsilon}")

# %%
# The same as numbers. ``noise_low`` to ``noise_high`` is the part of an interval that more ε would remove.

stream.release.count([[11.55, 48.12, 11.60, 48.15], [11.46, 48.08, 11.50, 48.10]])
