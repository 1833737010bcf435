"""
Rows: what, and when, besides where
===================================

A domain made of domains: a place, a category in groups, an age and the time of day. Synthetic rows have all columns,
and counts are by any of them.
"""

import numpy as np
from matplotlib import pyplot

import phdstream as phd

city = phd.Box([(9.10, 9.28), (45.42, 45.52)], names=("lon", "lat"), crs="EPSG:4326")
trips = phd.Product(
    city,
    phd.Category("vehicle", {"road": ["bus", "car"], "rail": ["tram", "metro"]}),
    phd.Bins("age", [0, 18, 40, 65, 120]),
    phd.TimeOfDay("hour"),
)
rng = np.random.default_rng(7)
n = 30_000
vehicle = rng.choice(["bus", "car", "tram", "metro"], n, p=[0.2, 0.4, 0.1, 0.3])
late = vehicle == "car"
events = {
    "lon": rng.normal(9.19, 0.02, n),
    "lat": rng.normal(45.465, 0.012, n),
    "vehicle": vehicle,
    "age": rng.gamma(6, 7, n),
    "hour": np.where(late, rng.normal(19, 3, n), rng.choice([8, 17], n) + rng.normal(0, 1.5, n)) % 24,
}
stream = phd.TrackingStream(trips, epsilon=1.0, unit=phd.Event())
release = stream.update(events)
release.sample(to="pandas").head()

# %%
# A table by attributes, with intervals. Tables by fewer of them are its sums.

table = release.table(["vehicle", "age"], to="pandas")
table[["vehicle", "age", "value", "low", "high"]].round().head(8)

# %%
# By the hour, on the road and on rails; bars are the true numbers, which only we know here.

figure, axes = pyplot.subplots(1, 2, figsize=(12, 3.6), layout="constrained", sharey=True)
for one, group, of in zip(axes, ("road", "rail"), (["bus", "car"], ["tram", "metro"]), strict=True):
    found = release.table(["hour"], where={"vehicle": group}, to="pandas")
    hours = np.arange(24)
    true = np.bincount(events["hour"][np.isin(vehicle, of)].astype(int), minlength=24)
    one.bar(hours, true, color="#dddddd", label="true")
    one.errorbar(
        hours,
        found["value"],
        [found["value"] - found["low"], found["high"] - found["value"]],
        fmt="o",
        ms=4,
        color="#0b62c4",
        label="released, with 95% intervals",
    )
    one.set(title=group, xlabel="hour")
axes[0].legend(frameon=False)

# %%
# Maps are of places; a condition narrows any count.

release.plot()

# %%

release.count([[9.18, 45.455, 9.20, 45.475]], where={"vehicle": "road", "hour": (17, 22)})
