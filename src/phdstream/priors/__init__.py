"""What the public knows of where events are: a prior for a stream to start from. Knows no private data."""

from phdstream.priors.prior import Prior

__all__ = ["Prior"]
