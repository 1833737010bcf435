"""
Named places
============

A hierarchy has no map: it has names. Its tables are there, and counts of groups and places have intervals as well.
"""

import numpy as np
from matplotlib import pyplot

import phdstream as phd

hospitals = phd.Hierarchy(
    {
        "North": {"Alta": ["General", "Women's"], "Bodø": ["Central"]},
        "South": {"Oslo": ["City", "West"], "Moss": ["Harbour"]},
    }
)
rng = np.random.default_rng(5)
places = ["General", "Women's", "Central", "City", "West", "Harbour"]
cases = rng.choice(places, 800, p=[0.1, 0.05, 0.15, 0.4, 0.2, 0.1])

stream = phd.TrackingStream(hospitals, epsilon=0.5, unit=phd.Event())
release = stream.update(cases)

names = ["North", "South", *places]
found = release.count(names)
figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
axes.barh(
    names, found.value, xerr=[found.value - found.low, found.high - found.value], color="#0b62c4", alpha=0.7, capsize=3
)
axes.invert_yaxis()
axes.set_xlabel("cases, with 95% intervals")

# %%
# A plot that cannot be drawn says what can be had instead.

try:
    release.plot()
except ValueError as error:
    print(error)
