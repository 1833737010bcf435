"""The page's HTML: texts, style and modules of this folder with Leaflet, all in one document. Public.

Nothing is loaded from outside, and the content security policy lets nothing be: scripts and styles run by their
hashes. Modules are joined in the order in which they import one another: each becomes a function that is called once
and returns what it exports, so that its own names stay its own.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from phdstream.errors import InputError

__all__ = ["joined_modules", "page_html", "page_policy", "texts"]

_IMPORT = re.compile(r'^import\s+(\{[^}]*\})\s+from\s+"\./([a-z_]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export\s+((?:async\s+)?(?:function|class|const)\s+(\w+))", re.MULTILINE)
_IMAGES = re.compile(r"url\([^)]*\)")


def page_html(head: dict[str, Any], content: bytes = b"", tiles: str = "") -> str:
    """Return a page: with what ``content`` holds, or, if there is none, one that asks the service it came from."""
    policy = page_policy(bool(content), tiles)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
    said = json.dumps(head | {"texts": texts(), "tiles": tiles}, ensure_ascii=False, allow_nan=False)
    said = said.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    parts = {
        "META": meta if content else "",
        "TITLE": html.escape(str(head.get("title") or texts()["title"])),
        "STYLE": _style(),
        "HEAD": said,
        "CONTENT": base64.b64encode(content).decode(),
        "LEAFLET": _leaflet("leaflet.js"),
        "MODULES": joined_modules(),
    }
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda found: parts[found[1]], _read("page.html"))


def page_policy(alone: bool, tiles: str = "") -> str:
    """Return the content security policy: of a file that stands alone, or of a page that asks its own service."""
    scripts = " ".join(_hash(script) for script in (_leaflet("leaflet.js"), joined_modules()))
    own = "'none'" if alone else "'self'"
    images = "data:" + (f" {_origin(tiles)}" if tiles else "")
    return (
        f"default-src 'none'; script-src {scripts}; style-src {_hash(_style())}; img-src {images}; "
        f"connect-src {own}; base-uri 'none'; form-action 'none'"
    )


def _origin(tiles: str) -> str:
    found = re.match(r"(https?://[A-Za-z0-9.:-]+)/", tiles.replace("{s}.", ""))
    if not found:
        raise InputError("a source of tiles is an address such as https://tiles.example.org/{z}/{x}/{y}.png.")
    return found[1].replace("//", "//*.", 1) if "{s}." in tiles else found[1]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def texts() -> dict[str, str]:
    """Return all words of the page, by key: the one file to translate."""
    found: dict[str, str] = json.loads(_read("texts.en.json"))
    return found


@cache
def joined_modules() -> str:
    """Return the page's modules as one, each after those it imports."""
    done: dict[str, str] = {}
    begun = set()

    def add(name: str) -> None:
        if name in begun:
            return
        begun.add(name)
        source = _read(f"js/{name}.js")
        for _, other in _IMPORT.findall(source):
            add(other)
        names = ", ".join(exported for _, exported in _EXPORT.findall(source))
        source = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = module_\2;", source))
        done[name] = f"const module_{name} = (() => {{\n{source}\nreturn {{ {names} }};\n}})();"

    add("main")
    return "\n".join(done.values())


@cache
def _style() -> str:
    return _IMAGES.sub("none", _leaflet("leaflet.css")) + _read("page.css")


@cache
def _leaflet(name: str) -> str:
    try:
        folder = files("xstatic.pkg.leaflet") / "data"
        text = (folder / name).read_text(encoding="utf-8")
    except (ImportError, OSError):
        raise InputError("the page draws with Leaflet: install it with  pip install 'phdstream[page]'.") from None
    return re.sub(r"//# sourceMappingURL=\S+", "", text).replace("</script", "<\\/script")


@cache
def _read(name: str) -> str:
    return (files("phdstream.page") / name).read_text(encoding="utf-8")
