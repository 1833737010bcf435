"""Streams in a folder that survive a crash at any instant."""
