"""`phdstream report`: any folder of releases as one file to look at, which opens without a network. Public.

Counts in a layer's areas are computed here, by `Release.count_in` at every tick. Rectangles and polygons that a reader
draws are counted in the file, on the coarse tree of `phdstream.page.coarse`, by the formulas of `Release.count`.
"""

from __future__ import annotations

from pathlib import Path

from phdstream.errors import InputError
from phdstream.io.archive import Archive, open_archive
from phdstream.page.gathered import Progress, releases_page
from phdstream.page.quantise import Frame
from phdstream.page.surroundings import read_layer_file
from phdstream.release.maps import check_planar
from phdstream.streams.state import replace_file

__all__ = ["write_report"]

_MOST_TICKS = 1000


def write_report(
    folder: Path,
    out: Path,
    layer: Path | None = None,
    title: str = "",
    tiles: str = "",
    progress: Progress = lambda done, total: None,
) -> Path:
    """Write one HTML file with all releases of a folder (the latest thousand), and return where it is."""
    archive = open_archive(folder)
    check_planar(archive.domain)
    manifest, ticks = archive.manifest() or {}, _ticks(archive)
    domain = archive.domain.location
    areas = read_layer_file(layer, domain, Frame.of(domain)) if layer else None
    releases = (archive.release(tick) for tick in ticks)

    def told(done: int, _: int | None) -> None:
        progress(done, len(ticks))

    page = releases_page(domain, manifest, releases, areas, title, tiles, told).encode()
    try:
        replace_file(out, lambda file: file.write(page), mode=0o644)
    except OSError as error:
        raise InputError(f"the page cannot be written to {out} ({error.strerror}): choose another place.") from None
    return out


def _ticks(archive: Archive) -> list[int]:
    last = archive.last_tick
    ticks = [tick for tick in range(max(1, last - _MOST_TICKS + 1), last + 1) if archive.has(tick)]
    if not ticks:
        raise InputError(f"{archive.folder} has no releases yet.")
    return ticks
