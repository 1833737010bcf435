"""The page of a running service: its document, what it asks for, and a tick that comes while it is open."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from phdstream.service.api.app import host
from phdstream.service.stream_service import StreamService
from tests.page.browser import needs_browser, opened, until
from tests.service.streams import HandClock, deliver, row, service_at, write_config

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def send(service: StreamService, tick: int, number: int = 300) -> None:
    points = np.random.default_rng(tick).normal(0.5, 0.1, (number, 2)).clip(0, 1).tolist()
    deliver(service, f"k{tick}", [row(10 * tick - 5, x, y) for x, y in points])


def release_one(service: StreamService, clock: HandClock, tick: int) -> None:
    clock.go_to(10 * tick - 5)
    send(service, tick)
    clock.go_to(10 * tick + 1)
    service.publisher.release_due()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[StreamService, HandClock]]:
    clock = HandClock()
    layer = {"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {"name": "<b>Middle"}, "geometry": {"type": "Polygon", "coordinates": [
            [[0.4, 0.4], [0.6, 0.4], [0.6, 0.6], [0.4, 0.6], [0.4, 0.4]]]}}]}  # fmt: skip
    areas = tmp_path / "middle.geojson"
    areas.write_text(json.dumps(layer))
    service = service_at(write_config(tmp_path, service='layer = "middle.geojson"'), clock)
    for tick in (1, 2):
        release_one(service, clock, tick)
    yield service, clock
    service.stop()


@contextmanager
def running(service: StreamService, *others: StreamService) -> Iterator[str]:
    """Serve streams whose ticks are released by hand."""
    import uvicorn

    app = host([service, *others])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        threading.Event().wait(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    service.announcer.close()
    server.should_exit = True
    thread.join(10)


def test_a_tick_is_ready_for_the_page_before_it_is_announced(
    served: tuple[StreamService, HandClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If somebody listens; and if it cannot be made ready, it is announced all the same."""
    service, clock = served
    happened: list[Any] = []
    service.prepare = lambda tick: happened.append(("ready", tick))
    monkeypatch.setattr(service.announcer, "announce", lambda tick: happened.append(("announced", tick)))
    release_one(service, clock, 3)
    assert happened == [("announced", 3)]
    monkeypatch.setattr(type(service.announcer), "listeners", 1)
    release_one(service, clock, 4)
    assert happened[1:] == [("ready", 4), ("announced", 4)]
    service.prepare = lambda tick: 1 // 0
    release_one(service, clock, 5)
    assert happened[3:] == [("announced", 5)]
    assert not service.publisher.failure


class TestWhatThePageAsksFor:
    def test_a_browser_gets_the_page_and_others_json(self, served: tuple[StreamService, HandClock]) -> None:
        with running(served[0]) as address:
            page, plain = httpx.get(address, headers=BROWSER), httpx.get(address)
        assert page.headers["content-type"].startswith("text/html")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "connect-src 'self'" in policy
        assert "unsafe" not in policy
        assert plain.json()["streams"]

    def test_facts_and_ticks(self, served: tuple[StreamService, HandClock]) -> None:
        service, _ = served
        with running(service) as address:
            facts = httpx.get(f"{address}v1/page").json()
            content = httpx.get(f"{address}v1/page/ticks/2").content
            assert httpx.get(f"{address}v1/page/ticks/3").status_code == 404
        assert [one["tick"] for one in facts["ticks"]] == [1, 2]
        assert facts["ticks"][1]["label"] == "2024-05-31 00:00:20"
        assert facts["simulated"]
        stay, new, _ = np.frombuffer(content[4:16], "<u4")
        assert stay + new == len(service.archive.release(2).sample())

    def test_a_closed_stream_shows_its_document_only(self, tmp_path: Path) -> None:
        service = service_at(write_config(tmp_path), HandClock())
        service.settings = replace(service.settings, public=False)
        with running(service) as address:
            assert httpx.get(address, headers=BROWSER).status_code == 200
            for path in ("v1/page", "v1/page/ticks/1", "v1/page/labels?tick=1"):
                assert httpx.get(address + path).status_code == 401
        service.stop()

    def test_each_of_several_streams_has_its_page(self, tmp_path: Path) -> None:
        folders = [tmp_path / name for name in ("a", "b")]
        for folder in folders:
            folder.mkdir()
        made = [service_at(write_config(one, service=f'name = "{one.name}"'), HandClock()) for one in folders]
        with running(*made) as address:
            assert list(httpx.get(address, headers=BROWSER).json()["streams"]) == ["a", "b"]
            for name in ("a/", "b/"):
                assert httpx.get(address + name, headers=BROWSER).headers["content-type"].startswith("text/html")
                assert httpx.get(f"{address}{name}v1/page").status_code == 404  # nothing is released yet
        for service in made:
            service.stop()


@pytest.mark.slow
@needs_browser
def test_a_tick_that_comes_is_shown_and_announced(served: tuple[StreamService, HandClock]) -> None:
    service, clock = served
    with running(service) as address, opened(address) as page:
        assert "Tick 2" in page.inner_text("#now")
        assert page.is_visible("#simulated")
        assert "The whole map, Tick 2" in page.inner_text("#answer")
        page.evaluate("page.ask({kind: 'rectangle', sides: [0.4, 0.4, 0.6, 0.6]})")
        expected = service.archive.release(2).count([[0.4, 0.4, 0.6, 0.6]])
        until(page, "page.counts.every(Boolean) && page.state.area?.kind === 'rectangle'")
        found: dict[str, Any] = page.evaluate("page.counts[1]")
        assert found["high"] == pytest.approx(expected.high[0])  # the whole release's own, not the coarse tree's
        until(page, "document.getElementById('live').textContent.startsWith('Live')")
        with ThreadPoolExecutor(1) as other:  # Playwright has an event loop in this thread
            other.submit(release_one, service, clock, 3).result()
        service.announcer.announce(3)
        until(page, "document.getElementById('now').textContent.includes('Tick 3')")
        assert page.inner_text("#live").startswith("New: Tick 3")
        assert page.get_attribute("#live", "aria-live") == "polite"
        until(page, "page.counts.length === 3 && page.counts.every(Boolean)")
        page.select_option("#pick", label="<b>Middle")
        until(page, "document.getElementById('answer').textContent.startsWith('<b>Middle, Tick 3')")
        page.click("#all-areas summary")
        page.wait_for_selector("#areas-table table")
        assert page.locator("#areas-table tbody th").all_inner_texts() == ["<b>Middle"]
        with page.expect_download() as download:
            page.click("#download-geoparquet")
        assert Path(download.value.path()).read_bytes()[:4] == b"PAR1"


@pytest.mark.slow
@needs_browser
def test_a_closed_stream_asks_for_a_token(served: tuple[StreamService, HandClock]) -> None:
    service, _ = served
    token = service.tokens.add("reader", ("read",))
    service.settings = replace(service.settings, public=False)
    with running(service) as address, opened(address, ready=False) as page:
        for given in ("wrong", token):
            page.wait_for_selector("#token", state="visible")
            page.fill("#token-value", given)
            page.keyboard.press("Enter")
        page.wait_for_selector("body[data-ready=yes]")
        assert "Tick 2" in page.inner_text("#now")
        assert token not in page.url
        assert page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0
