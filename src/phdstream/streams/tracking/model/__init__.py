"""The model of tracking: sees noisy counts only. Everything here is post-processing, at no privacy cost."""

from phdstream.streams.tracking.model.model import Model

__all__ = ["Model"]
