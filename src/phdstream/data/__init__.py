"""Streams to try it on."""

from phdstream.data.circles import CircleTick, moving_circles

__all__ = ["CircleTick", "moving_circles"]
