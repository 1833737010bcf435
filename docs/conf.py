"""The documentation site: Sphinx, the PyData theme, notebooks by MyST-NB, a gallery by Sphinx-Gallery (`make docs`)."""

from __future__ import annotations

import os
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sphinx.util.logging import getLogger

HERE = Path(__file__).parent
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # notebooks call phdstream

from phdstream import __version__  # noqa: E402

project, author, copyright = "phdstream", "The phdstream maintainers", "The phdstream maintainers, Apache-2.0"
release = version = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "*.template.md", "gallery_src", "gallery/*.ipynb", "**sg_execution_times.rst"]
templates_path = ["_templates"]
nitpicky = False
default_role = "py:obj"
suppress_warnings = [
    "toc.not_included",  # listed at the end of the build instead, see _list_pages_apart
    "config.cache",
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}

sphinx_gallery_conf = {
    "examples_dirs": ["gallery_src"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "capture_repr": ("_repr_html_",),  # what plots return says nothing
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "phdstream"
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "logo": {"text": f"phdstream {__version__}"},
}
html_static_path = ["_static"]
html_css_files = ["site.css"]


_OUTSIDE = {"SECURITY.md": "security.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the repository's root, and where the site has them."""


def _as_on_the_site(app: Any, page: str, source: list[str]) -> None:
    """Take pages of the repository's root whole, and point links to them at their place on the site."""
    text, depth = source[0], page.count("/")
    for name, own in _OUTSIDE.items():
        if page == own.removesuffix(".md"):
            text = (HERE.parent / name).read_text(encoding="utf-8").replace("](docs/", "](")
            text = re.sub(rf"\]\(({'|'.join(map(re.escape, _OUTSIDE))})", lambda found: f"]({_OUTSIDE[found[1]]}", text)
    for name, own in _OUTSIDE.items():
        text = re.sub(rf"\]\((?:\.\./){{{depth + 1}}}{re.escape(name)}", f"]({'../' * depth}{own}", text)
    source[0] = "\n".join(line for line in text.split("\n") if not _is_empty_pattern(line, page))


def _is_empty_pattern(line: str, page: str) -> bool:
    """Tell whether a line of a table of contents is a pattern of pages that are not there, or not yet."""
    up, folder = line.count("../"), (HERE / page).parent
    if not re.fullmatch(r"[\w./-]*\*", line):
        return False
    for _ in range(up):
        folder = folder.parent
    return not list(folder.glob(f"{line.replace('../', '')}.md"))


def _list_parameters(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Turn our sections of parameters (``name: what it is``, a line each) into lists."""
    if "Parameters" not in lines:
        return
    begin = lines.index("Parameters")
    end = next((i for i in range(begin + 2, len(lines)) if not lines[i].strip()), len(lines))
    found = [re.sub(r"^([\w*, ]+): ", r"- **\1**: ", line) for line in lines[begin + 2 : end]]
    found = [line if line.startswith("- ") else f"  {line.strip()}" for line in found]
    lines[begin:end] = [".. rubric:: Parameters", "", *(line.replace("***", "**") for line in found)]


def _check_links(app: Any, error: Exception | None) -> None:
    """Warn of every link inside the site that leads nowhere, and write down those that lead out of it.

    Nothing is fetched: addresses outside are for someone with a network to look at.
    """
    if error is not None or app.builder.name != "html":
        return
    texts = {page.resolve(): page.read_text(encoding="utf-8") for page in sorted(Path(app.outdir).rglob("*.html"))}
    marks = {page: set(re.findall(r'\sid="([^"]+)"', text)) for page, text in texts.items()}
    outside = set()
    for page, text in texts.items():
        for address in map(unescape, re.findall(r'<a\s[^>]*?href="([^"]+)"', text)):
            if re.match(r"[a-z]+:", address):
                outside.add(address)
                continue
            place, _, mark = address.partition("#")
            target = (page.parent / unquote(place)).resolve() if place else page
            if not target.exists() or (mark and target in marks and unquote(mark) not in marks[target]):
                getLogger(__name__).warning("%s links to %s, which is not there", page.name, address)
    (Path(app.outdir).parent / "external-links.txt").write_text("\n".join(sorted(outside)) + "\n", encoding="utf-8")


def _list_pages_apart(app: Any, environment: Any) -> None:
    """Say which pages no table of contents leads to: they are built, and can be found by search only."""
    included = {child for children in environment.toctree_includes.values() for child in children}
    apart = sorted(set(environment.found_docs) - included - {"index"})
    if apart:
        sys.stdout.write(f"In no table of contents: {', '.join(apart)}\n")


def setup(app: Any) -> None:
    """Connect the small things above."""
    app.connect("autodoc-process-docstring", _list_parameters)
    app.connect("source-read", _as_on_the_site)
    app.connect("build-finished", _check_links)
    app.connect("env-check-consistency", _list_pages_apart)
