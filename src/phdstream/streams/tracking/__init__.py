"""Tracking: the structure is chosen from what is already public, so all budget goes to counting."""

from phdstream.streams.tracking.stream import TrackingStream

__all__ = ["TrackingStream"]
