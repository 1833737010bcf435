"""What a stream begins from: a public prior, or nothing; fixed before any data is seen, and part of what the stream is.

A stream is known by a digest of its prior's numbers, so that it cannot go on with another one. The numbers themselves
are kept in the state until the start: from then on all that was believed of them is in the splits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from phdstream.errors import InputError, shown
from phdstream.priors import Prior
from phdstream.priors.splits import MOST_NODES
from phdstream.privacy import Noise
from phdstream.streams.setting import Setting
from phdstream.streams.state import Arrays, nest, unnest
from phdstream.streams.tracking.model.split_tree import SplitTree

__all__ = ["Beginning"]

_ROOM = 12
"""A prior takes at most such a part of the nodes remembered: there must be room to count, and to smooth."""


@dataclass(frozen=True)
class Beginning:
    """A prior by name and digest, and its splits (None after the start, or if there is no prior)."""

    about: str = ""
    digest: str = ""
    simulated: bool = False
    splits: SplitTree | None = field(default=None, repr=False)

    @classmethod
    def of(cls, prior: Prior | dict[str, Any] | None, setting: Setting, noise: Noise) -> Self:
        """Return what a stream begins from; as plain data it comes from a saved state."""
        if prior is None:
            return cls()
        if isinstance(prior, dict):
            return cls(**prior)
        if not isinstance(prior, Prior):
            raise InputError(f"prior must be a Prior, such as Prior.from_points(...), not {shown(prior)}.")
        if prior.simulated and noise.private:
            raise InputError(
                "this prior is a release that was only simulated, so it is not private, and nothing public: start from "
                "one with exact noise."
            )
        splits = prior.on(setting.domain, max(1, min(MOST_NODES, setting.max_nodes // _ROOM)))
        tree = SplitTree(splits.node, splits.contrast, splits.variance)
        return cls(prior.about, splits.digest, prior.simulated, tree)

    def to_dict(self) -> dict[str, Any] | None:
        """Return what names the prior, as plain data; None without any."""
        return {"about": self.about, "digest": self.digest, "simulated": self.simulated} if self.digest else None

    def to_arrays(self) -> Arrays:
        """Return the prior's splits, while they are needed. Public."""
        return {} if self.splits is None else nest("prior", self.splits.to_arrays())

    def restored(self, arrays: Arrays) -> Self:
        """Return the same with the splits that `to_arrays` gave."""
        columns = unnest("prior", arrays)
        splits = SplitTree(**columns) if columns else None
        return type(self)(self.about, self.digest, self.simulated, splits)

    def begun(self) -> Self:
        """Return the same after the start, when the splits are no longer needed."""
        return type(self)(self.about, self.digest, self.simulated)
