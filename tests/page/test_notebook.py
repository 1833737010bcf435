"""`explore()`: the page inside a notebook's frame, shut off from the notebook around it."""

from __future__ import annotations

from pathlib import Path

import pytest

import phdstream as phd
from phdstream.errors import InputError
from tests.page.browser import file_address, needs_browser, opened
from tests.page.folders import city_releases


@pytest.fixture(scope="module")
def release() -> phd.Release:
    return city_releases(2)[-1]


def test_it_is_a_frame_with_all_in_it(release: phd.Release) -> None:
    shown = release.explore()._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "allow-same-origin" not in shown
    assert " src=" not in shown
    assert "simulated, not private" in repr(release.explore())


def test_it_is_saved_as_a_page(release: phd.Release, tmp_path: Path) -> None:
    page = release.explore()
    assert page.save(tmp_path / "page.html").read_text() == page.html
    with pytest.raises(InputError, match="choose another place"):
        page.save(tmp_path / "no" / "page.html")


@pytest.mark.slow
@needs_browser
def test_it_works_inside_a_notebook(release: phd.Release, tmp_path: Path) -> None:
    """In a frame without an address the page is drawn, counts, and asks for nothing."""
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8><p>Out[1]:</p>{release.explore()._repr_html_()}")
    with opened(file_address(notebook), ready=False, viewport={"width": 1200, "height": 800}) as page:
        frame = page.frame_locator("iframe")
        frame.locator("body[data-ready=yes]").wait_for()
        assert "could not be shown" not in frame.locator("body").inner_text()
        assert not frame.get_by_role("button", name="Play").is_visible()  # there is one tick only
        frame.get_by_role("button", name="Take what the map shows").click()
        assert "most likely between" in frame.locator("#answer").inner_text()
        assert frame.get_by_role("button", name="link").count() == 0


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("before", ["<div style='height:9000px'></div><div>", "<div id=tab style='display:none'>"])
def test_it_waits_until_it_is_seen(release: phd.Release, tmp_path: Path, before: str) -> None:
    """A frame that has no size when it is loaded, far below or in a hidden tab, is drawn when it has one; hidden again,
    it does no harm.
    """
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8>{before}{release.explore()._repr_html_()}</div>")
    with opened(file_address(notebook), ready=False, viewport={"width": 1200, "height": 800}) as page:
        page.wait_for_timeout(300)
        page.evaluate("document.getElementById('tab')?.removeAttribute('style'); scrollTo(0, 9000)")
        frame = page.frame_locator("iframe")
        frame.locator("body[data-ready=yes]").wait_for()
        assert "could not be shown" not in frame.locator("body").inner_text()
        canvas = "() => document.querySelector('.page-canvas').width"
        assert page.frames[1].evaluate(canvas) > 600
        page.evaluate("document.querySelector('iframe').style.display = 'none'")
        page.wait_for_timeout(100)
        page.evaluate("document.querySelector('iframe').style.display = ''")
        frame.get_by_role("button", name="Take what the map shows").click()
        assert "most likely between" in frame.locator("#answer").inner_text()
