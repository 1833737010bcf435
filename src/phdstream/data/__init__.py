"""Streams to try it on: the paper's circles, Gowalla and taxis, and any table of timed points; geometries."""

from phdstream.data.checkins import gowalla, gowalla_stream
from phdstream.data.circles import CircleTick, growing_circles, moving_circles
from phdstream.data.geometries import land, new_york_state
from phdstream.data.streams import Stream, StreamTick, between, inside, replay, subsample
from phdstream.data.tables import events_table
from phdstream.data.taxi import yellow_taxi, yellow_taxi_stream

__all__ = [
    "CircleTick",
    "Stream",
    "StreamTick",
    "between",
    "events_table",
    "gowalla",
    "gowalla_stream",
    "growing_circles",
    "inside",
    "land",
    "moving_circles",
    "new_york_state",
    "replay",
    "subsample",
    "yellow_taxi",
    "yellow_taxi_stream",
]
