"""Engines beside the one that is built in: who counts when events no longer fit one machine."""
