"""What comes out of a tick: cells, counts with errors, synthetic points. All public."""

from phdstream.release.release import Changes, Counts, Release

__all__ = ["Changes", "Counts", "Release"]
