"""The mechanism of tracking: the only room that holds private events and draws noise."""

from phdstream.streams.tracking.mechanism.mechanism import Mechanism

__all__ = ["Mechanism"]
