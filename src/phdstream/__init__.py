"""phdstream: live location data as a synthetic stream, with differential privacy over the whole stream.

Names are loaded when they are first used (PEP 562), so that importing the package, or asking the command line for help,
does not wait for NumPy, Arrow and Shapely.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from phdstream.version import __version__

if TYPE_CHECKING:
    from phdstream import baselines, counters
    from phdstream.domains import Box, Cube, Domain, Hierarchy
    from phdstream.domains.globe import Globe
    from phdstream.domains.network import Network
    from phdstream.domains.product import Bins, Category, DayOfWeek, Product, TimeOfDay
    from phdstream.domains.region import Region
    from phdstream.history import Releases, read_releases
    from phdstream.priors import Prior
    from phdstream.privacy import Event, ExactNoise, Record, Simulation, User
    from phdstream.release import Changes, Counts, Release
    from phdstream.streams.durable.stream import DurableStream, durable
    from phdstream.streams.paper.privtree import PrivTree
    from phdstream.streams.paper.selective_counting import SelectiveCounting
    from phdstream.streams.paper.stream import PHDStream
    from phdstream.streams.tracking import TrackingStream

__all__ = [
    "Bins",
    "Box",
    "Category",
    "Changes",
    "Counts",
    "Cube",
    "DayOfWeek",
    "Domain",
    "DurableStream",
    "Event",
    "ExactNoise",
    "Globe",
    "Hierarchy",
    "Network",
    "PHDStream",
    "Prior",
    "PrivTree",
    "Product",
    "Record",
    "Region",
    "Release",
    "Releases",
    "SelectiveCounting",
    "Simulation",
    "TimeOfDay",
    "TrackingStream",
    "User",
    "__version__",
    "baselines",
    "counters",
    "durable",
    "read_releases",
]

_MODULES = ("baselines", "counters")
_HOMES = {
    "streams.paper.selective_counting": ("SelectiveCounting",),
    "domains": ("Box", "Cube", "Domain", "Hierarchy"),
    "domains.globe": ("Globe",),
    "domains.network": ("Network",),
    "domains.product": ("Bins", "Category", "DayOfWeek", "Product", "TimeOfDay"),
    "domains.region": ("Region",),
    "history": ("Releases", "read_releases"),
    "streams.durable.stream": ("DurableStream", "durable"),
    "priors": ("Prior",),
    "privacy": ("Event", "ExactNoise", "Record", "Simulation", "User"),
    "streams.paper.privtree": ("PrivTree",),
    "release": ("Changes", "Counts", "Release"),
    "streams.paper.stream": ("PHDStream",),
    "streams.tracking": ("TrackingStream",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"phdstream.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'phdstream' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"phdstream.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
