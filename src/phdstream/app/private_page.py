"""Pages for the custodian alone: marked PRIVATE from edge to edge, closed to everyone else, loading nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from phdstream.errors import InputError
from phdstream.streams.state import replace_file

__all__ = ["facts_table", "picture", "private_html", "table", "write_private"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; border: 14px solid #8f1313; min-height: 100vh; background: #fff;
color: #1b1f24; box-sizing: border-box; } main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
.private { background: #8f1313; color: #fff; font-weight: 700; padding: .7rem 1rem; margin: 0; }
img { width: 100%; height: auto; } table { border-collapse: collapse; } td, th { padding: .25rem .9rem;
text-align: right; border-bottom: 1px solid #8a939c; vertical-align: top; } th:first-child, td:first-child { text-align:
left; } table.facts td { text-align: left; } .quiet { color: #57606a; } h2 { margin-top: 2.2rem; }
pre { background: #f6f8fa; padding: 1rem; overflow-x: auto; font-size: .82rem; }
.warning { border-left: 6px solid #d1690e; padding-left: .8rem; } .scroll { max-height: 24rem; overflow: auto; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def private_html(title: str, warning: str, body: str) -> str:
    """Return a page; ``warning`` says after the word PRIVATE what is on it. ``body`` is HTML."""
    return f"""<!doctype html><html lang='en'><head><meta charset='utf-8'><title>PRIVATE: {escape(title)}</title>
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head><body>
<p class='private'>PRIVATE. {escape(warning)}</p><main>
<h1>{escape(title)}</h1>
{body}
</main></body></html>"""


def picture(png: bytes, label: str) -> str:
    """Return a picture inside a page."""
    return f"<img alt='{escape(label)}' src='data:image/png;base64,{base64.b64encode(png).decode()}'>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts; the first of each row names it.

    >>> "&lt;</th><td>2</td>" in table(["a", "b"], [["<", "2"]])
    True
    """
    names = "".join(f"<th scope='col'>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{_head(first)}{''.join(map(_cell, rest))}</tr>" for first, *rest in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def facts_table(rows: Iterable[tuple[str, str]]) -> str:
    """Return facts by name."""
    lines = "".join(f"<tr>{_head(name)}{_cell(fact)}</tr>" for name, fact in rows)
    return f"<table class='facts'><tbody>{lines}</tbody></table>"


def _head(name: str) -> str:
    return f"<th scope='row'>{escape(name)}</th>"


def _cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"


def write_private(page: Path, html: str) -> Path:
    """Write a page that only its owner may read, and return where it is."""
    try:
        replace_file(page, lambda file: file.write(html.encode()), mode=0o600)
    except OSError as error:
        raise InputError(f"the page cannot be written to {page} ({error.strerror}): choose another place.") from None
    return page
