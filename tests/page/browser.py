"""A real browser for tests: Debian's Chromium, driven by Playwright; skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (`make services` gets it)")


@contextmanager
def opened(address: str, ready: bool = True, **context: Any) -> Iterator[Any]:
    """Open a page and wait until it is there; fail on any error of a script and on any request to elsewhere."""
    from playwright.sync_api import sync_playwright

    wrong: list[str] = []
    own = address.partition("#")[0].rsplit("/", 1)[0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(accept_downloads=True, **context).new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
        local = (own, "data:", "blob:")
        page.on("request", lambda r: None if r.url.startswith(local) else wrong.append(f"asked for {r.url}"))
        page.goto(address)
        if ready:
            page.wait_for_selector("body[data-ready=yes]")
        yield page
        browser.close()
    assert not wrong


def until(page: Any, expression: str, seconds: float = 20.0) -> None:
    """Wait until an expression is true in a page (whose policy lets no waiting script be evaluated inside it)."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never came true: {expression}"
        page.wait_for_timeout(20)


def file_address(path: Path, fragment: str = "") -> str:
    return f"file://{path}{fragment}"
