"""Geometries as they come: arrays, frames, files, coordinate systems."""
