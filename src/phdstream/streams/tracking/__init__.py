"""Tracking: where to count is chosen from what is already public, so all budget goes to counting."""

from phdstream.streams.tracking.parameters import TrackingParameters
from phdstream.streams.tracking.stream import TrackingStream

__all__ = ["TrackingParameters", "TrackingStream"]
