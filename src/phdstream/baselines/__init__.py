"""What a method is compared with: the paper's three baselines, and the floors that any method must beat.

**The names that end in NotPrivate are not private over a stream.**
"""

from phdstream.baselines.changes import OfflineOnChangesNotPrivate, OfflineOnInsertsNotPrivate
from phdstream.baselines.fixed_partition import FixedPartition
from phdstream.baselines.floors import Nothing, UniformTotal
from phdstream.baselines.offline import OfflineEachTickNotPrivate, TrackingEachTickNotPrivate
from phdstream.baselines.releaser import Releaser

__all__ = [
    "FixedPartition",
    "Nothing",
    "OfflineEachTickNotPrivate",
    "OfflineOnChangesNotPrivate",
    "OfflineOnInsertsNotPrivate",
    "Releaser",
    "TrackingEachTickNotPrivate",
    "UniformTotal",
]
