"""The page of releases inside a notebook: a frame with the whole page in it, which asks nothing of anyone. Public."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from phdstream.domains import Domain
from phdstream.errors import InputError
from phdstream.page.gathered import releases_page
from phdstream.page.quantise import Frame
from phdstream.page.surroundings import Layer
from phdstream.release import Release
from phdstream.release.layers import area_names, is_frame
from phdstream.release.maps import check_planar, check_released, layer_shapes

__all__ = ["ExplorePage", "explored", "explored_ticks"]

_HEIGHT = 640


class ExplorePage:
    """A page of releases: a notebook shows it, `save` writes it to a file that opens in any browser."""

    def __init__(self, page: str, privacy: str) -> None:
        self.html, self._privacy = page, privacy

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, and return where it is."""
        try:
            Path(path).write_text(self.html, encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"the page cannot be written to {path} ({error.strerror}): choose another place."
            ) from None
        return Path(path)

    def _repr_html_(self) -> str:
        # Without allow-same-origin the page can touch nothing of the notebook around it.
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-downloads" title="Releases to explore" '
            f'style="width:100%;height:{_HEIGHT}px;border:1px solid #8888"></iframe>'
        )

    def __repr__(self) -> str:
        size = f"{len(self.html) / 1e6:.1f} MB"
        return f"<A page to explore, {size}: a notebook shows it, .save(path) writes it; {self._privacy}>"


def explored(release: Release) -> ExplorePage:
    """Return the page of one release."""
    check_planar(release.domain)
    check_released(release)
    return ExplorePage(releases_page(release.domain, release.metadata, [release]), release.privacy)


def explored_ticks(
    domain: Domain, manifest: dict[str, Any], releases: Iterable[Release], layer: Any, privacy: str
) -> ExplorePage:
    """Return the page of some ticks; a layer's areas can be picked on it, by the names in its first column of text."""
    check_planar(domain)
    areas = None if layer is None else _layer(domain.location, layer)
    return ExplorePage(releases_page(domain, manifest, releases, areas), privacy)


def _layer(domain: Domain, layer: Any) -> Layer:
    shapes = layer_shapes(domain, layer)
    names = area_names(layer) if is_frame(layer) else [f"Area {i + 1}" for i in range(len(shapes))]
    return Layer(names, shapes, Frame.of(domain))
