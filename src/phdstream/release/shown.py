"""Releases and counts as notebooks show them: what it is, what is promised, a small picture. Public."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from phdstream.domains.codes import ROOT

if TYPE_CHECKING:
    from phdstream.arrays import Floats
    from phdstream.release.release import Release

__all__ = ["card_html", "release_html", "table_html"]

_MOST_ROWS = 20
_SQUARES = 40
"""Squares along the longer side of a small picture."""
_WIDTH, _SHADES = 150, 6
_CELL = "padding:2px 10px;text-align:right;border:none"


def release_html(release: Release) -> str:
    """Return what a notebook shows of a release."""
    rows = [
        ("Where", repr(release.domain)),
        ("Promise", release.privacy),
        ("Points", "held until the start" if release.held else f"about {release.total:,.0f}, synthetic"),
        ("Cells", f"{release.leaves.size:,}"),
    ]
    if release.usefulness.warning:
        rows.append(("Beware", release.usefulness.warning))
    by = f", .table(['{release.domain.attributes[0].name}'])" if release.domain.attributes else ""
    hint = f".plot() and .explore() draw it; .sample(), .cells(){by} and .count_in(layer) are its numbers"
    return card_html(f"Release of tick {release.tick}", rows, hint, _thumbnail(release))


def card_html(title: str, rows: Sequence[tuple[str, str]], hint: str = "", picture: str = "") -> str:
    """Return a card: a title, facts by name, a picture beside them.

    >>> "&lt;c&gt;" in card_html("A", [("b", "<c>")])
    True
    """
    lines = "".join(
        f'<tr style="background:none"><th scope="row" style="{_CELL};vertical-align:top">{escape(name)}</th>'
        f'<td style="{_CELL};text-align:left;vertical-align:top">{escape(value)}</td></tr>'
        for name, value in rows
    )
    below = f'<div style="opacity:.7;font-size:90%">{escape(hint)}</div>' if hint else ""
    return (
        '<div style="display:flex;gap:1em;align-items:flex-start;max-width:60em">'
        f'{picture}<div><b>{escape(title)}</b><table style="border-collapse:collapse">{lines}</table>{below}</div>'
        "</div>"
    )


def table_html(title: str, rows: Sequence[tuple[str, ...]], note: str) -> str:
    """Return a small table, its first row being the head; of a long one the beginning."""
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(x)}</td>' for x in row) + "</tr>"
        for row in rows[1 : _MOST_ROWS + 1]
    )
    more = f"<div>and {len(rows) - 1 - _MOST_ROWS:,} more</div>" if len(rows) - 1 > _MOST_ROWS else ""
    return (
        f'<div style="max-width:60em"><b>{escape(title)}</b><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        f'</table>{more}<div style="opacity:.7;font-size:90%">{escape(note)}</div></div>'
    )


def _thumbnail(release: Release) -> str:
    """Return a picture of how dense points are, darker where there are more; nothing where there is no map."""
    if release.domain.location.dimension != 2 or release.held or not release.points.any():
        return ""
    shares, high = _densities(release)
    unit, strength = _WIDTH / _SQUARES, np.ceil(shares * _SHADES)
    shades = "".join(
        f'<path fill-opacity="{shade / _SHADES:.2f}" d="'
        + "".join(f"M{x} {high - 1 - y}h1v1h-1z" for y, x in np.argwhere(strength == shade).tolist())
        + '"/>'
        for shade in range(1, _SHADES + 1)
    )
    size = f'viewBox="0 0 {_SQUARES} {high}" width="{_WIDTH}" height="{high * unit:.0f}"'
    style = 'style="border:1px solid #8888;flex:none"'
    return f'<svg role="img" aria-label="Where the points are" {size} {style}><g fill="#0b62c4">{shades}</g></svg>'


def _densities(release: Release) -> tuple[Floats, int]:
    """Return the synthetic points of squares as parts of the fullest, to the power of a half; and their rows."""
    from phdstream.domains.resolution import ground_units

    place = release.domain.location
    west, south, east, north = place.bounds(np.array([ROOT]))[0]
    points = np.asarray(release.domain.sample(release.leaves, release.points, release.key)[:, :2], dtype=np.float64)
    units = ground_units(place.crs, place.names, np.array([west, south]), np.array([east, north]))
    wide, tall = np.array([east - west, north - south]) * (1 if units is None else units)
    high = int(np.clip(round(_SQUARES * tall / wide), 4, 2 * _SQUARES))
    x, y = points.T
    number = np.histogram2d(y, x, bins=(high, _SQUARES), range=[(south, north), (west, east)])[0]
    return np.sqrt(number / max(number.max(), 1)), high
