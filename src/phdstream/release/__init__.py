"""What comes out of a tick: cells, counts with errors, synthetic points. All public."""

from phdstream.release.changes import Changes
from phdstream.release.counts import Counts
from phdstream.release.release import Release

__all__ = ["Changes", "Counts", "Release"]
