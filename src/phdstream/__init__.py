"""phdstream: live location data as a synthetic stream, with differential privacy over the whole stream."""

from phdstream import baselines, counters
from phdstream.counting import SelectiveCounting
from phdstream.domains import Box, Cube, Domain, Hierarchy
from phdstream.domains.globe import Globe
from phdstream.domains.network import Network
from phdstream.domains.region import Region
from phdstream.durability import DurableStream, durable
from phdstream.privacy import Event, ExactNoise, Record, Simulation, User
from phdstream.privtree import PrivTree
from phdstream.release import Changes, Counts, Release
from phdstream.stream import PHDStream
from phdstream.tracking import TrackingStream
from phdstream.version import __version__

__all__ = [
    "Box",
    "Changes",
    "Counts",
    "Cube",
    "Domain",
    "DurableStream",
    "Event",
    "ExactNoise",
    "Globe",
    "Hierarchy",
    "Network",
    "PHDStream",
    "PrivTree",
    "Record",
    "Region",
    "Release",
    "SelectiveCounting",
    "Simulation",
    "TrackingStream",
    "User",
    "__version__",
    "baselines",
    "counters",
    "durable",
]
