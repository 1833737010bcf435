"""Releases out: in every format what the release itself says, the same for ever, and each new one as it comes."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from phdstream.release import Release
from phdstream.service.api import releases
from tests.service.api.serving import Make, Served, crowd

gpd = pytest.importorskip("geopandas")
PARTS = ("points", "cells", "changes")
FORMATS = ("json", "geojson", "geoparquet", "parquet", "arrow", "csv")


def release(one: Served, tick: int = 3) -> Release:
    return one.service.archive.release(tick)


def get(one: Served, part: str, form: str, tick: Any = 3) -> bytes:
    answer = one.get(f"/v1/releases/{tick}/{part}", params={"f": form})
    assert answer.status_code == 200, answer.text
    return bytes(answer.content)


def test_listed(released: Served) -> None:
    listed = released.get("/v1/releases").json()
    assert listed["last"] == 3
    assert [entry["tick"] for entry in listed["releases"]] == [1, 2, 3]
    assert released.get(listed["releases"][1]["href"]).json()["tick"] == 2
    assert [entry["tick"] for entry in released.get("/v1/releases?first=2&limit=1").json()["releases"]] == [2]
    assert released.get("/v1/releases?first=1000000000").json()["releases"] == []
    assert released.get("/v1/releases?limit=1001").status_code == 422


def test_a_release(released: Served) -> None:
    latest = released.get("/v1/releases/latest")
    assert latest.headers["Cache-Control"] == "public, no-cache"
    about, own = latest.json(), release(released)
    assert (about["tick"], about["total"], about["privacy"]) == (3, own.total, own.privacy)
    assert about["points"] == len(own.sample())
    assert released.get("/v1/releases/3").json() == about
    for part, href in about["links"].items():
        assert released.get(href).json().keys() == {"tick", "privacy", "rows", part}
    assert released.get("/v1/releases/4").status_code == 404


def test_points_in_every_format(released: Served) -> None:
    own = release(released).sample()
    columns = json.loads(get(released, "points", "json"))["points"]
    assert np.array_equal(np.column_stack([columns["x"], columns["y"]]), own)
    table = pa.ipc.open_stream(get(released, "points", "arrow")).read_all()
    assert np.array_equal(np.column_stack([table["x"], table["y"]]), own)
    assert b"privacy" in table.schema.metadata
    frame = gpd.read_parquet(io.BytesIO(get(released, "points", "geoparquet")))
    assert frame.crs == "EPSG:4326"
    assert np.array_equal(np.column_stack([frame.geometry.x, frame.geometry.y]), own)
    features = gpd.read_file(io.BytesIO(get(released, "points", "geojson")))
    assert np.allclose(np.column_stack([features.geometry.x, features.geometry.y]), own, atol=1e-9)
    lines = [line for line in get(released, "points", "csv").decode().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert np.allclose([[float(r["x"]), float(r["y"])] for r in rows], own, atol=1e-9)


@pytest.mark.parametrize("part", ["cells", "changes"])
def test_cells_and_changes_in_every_format(released: Served, part: str) -> None:
    own = release(released).cells() if part == "cells" else release(released).changes().to_table()
    columns = json.loads(get(released, part, "json"))[part]
    assert list(columns) == own.column_names
    table = pa.ipc.open_stream(get(released, part, "arrow")).read_all()
    assert table.equals(own)
    assert len(gpd.read_parquet(io.BytesIO(get(released, part, "geoparquet")))) == own.num_rows
    assert len(json.loads(get(released, part, "geojson"))["features"]) == own.num_rows
    assert len(list(csv.DictReader(io.StringIO(get(released, part, "csv").decode())))) == own.num_rows
    for name in own.column_names:
        values = own[name].to_pylist()
        kept = [None if isinstance(v, float) and not np.isfinite(v) else v for v in values]
        assert columns[name] == kept


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("form", FORMATS)
def test_the_same_for_ever(released: Served, part: str, form: str) -> None:
    """What was given once is given again, also after a restart; who has it is told so."""
    path = f"/v1/releases/2/{part}?f={form}"
    first = released.get(path)
    assert first.headers["Cache-Control"].startswith("public, max-age=")
    assert first.headers["X-Tick"] == "2"
    etag = first.headers["ETag"]
    for known in (etag, f'"x", {etag}', f"W/{etag}", "*"):
        answer = released.get(path, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", etag)
    for other in ('"x"', etag.replace("-2-", "-1-"), etag[1:-1]):
        assert released.get(path, headers={"If-None-Match": other}).content == first.content
    released.app.state.encodings.__init__()
    assert released.get(path).content == first.content
    assert released.get(path.replace("/2/", "/1/")).headers["ETag"] != etag


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("*/*", "application/json"),
        ("application/geo+json", "application/geo+json"),
        ("text/html, application/vnd.apache.arrow.stream;q=0.9", "application/vnd.apache.arrow.stream"),
        ("application/vnd.apache.parquet", "application/vnd.apache.parquet"),
        ("text/csv", "text/csv; charset=utf-8"),
        ("", "application/json"),
    ],
)
def test_formats_by_media_type(released: Served, accept: str, media: str) -> None:
    answer = released.get("/v1/releases/latest/points", headers={"Accept": accept})
    assert answer.headers["Content-Type"] == media
    assert "Accept" in answer.headers["Vary"]


def test_what_needs_a_token_is_kept_by_no_shared_cache(make: Make) -> None:
    one = make(service="")
    one.post(crowd(5))
    one.go_to(10)
    releases = [f"/v1/releases/{tick}{part}" for tick in ("latest", "1") for part in ("", "/points", "/changes")]
    for path in (*releases, "/v1/page/ticks/1", "/v1/page/ticks/latest"):
        assert one.get(path, headers=one.by("read")).headers["Cache-Control"].startswith("private, ")


def test_nothing_released_yet(make: Make) -> None:
    one = make()
    for path in ("/v1/releases/latest", "/v1/releases/1", "/v1/releases/latest/points", "/v1/counts?bbox=0,40,1,41"):
        answer = one.get(path)
        assert (answer.status_code, answer.json()["status"]) == (404, 404)
    assert one.get("/v1/releases").json() == {"last": 0, "releases": []}


def test_a_format_that_is_none(released: Served) -> None:
    assert released.get("/v1/releases/latest/points?f=xml").status_code == 422
    assert released.get("/v1/releases/latest/lines").status_code == 422


def test_a_format_that_a_domain_has_not(make: Make) -> None:
    """A box of three sides has no map."""
    one = make(domain='type = "box"\nbounds = [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]', names='"x", "y", "z"')
    one.go_to(10)
    assert one.get("/v1/releases/1/points?f=arrow").status_code == 200
    answer = one.get("/v1/releases/1/points?f=geojson")
    assert (answer.status_code, answer.json()["title"]) == (406, "Not Acceptable")


class Listener:
    """Reads server-sent events from the app itself, as a server would have it."""

    def __init__(self, one: Served, last: str | None = None) -> None:
        self._app, self.text, self.status = one.app, "", 0
        headers = [(b"host", b"test")] + ([] if last is None else [(b"last-event-id", last.encode())])
        self._scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": "/v1/stream",
            "raw_path": b"/v1/stream", "query_string": b"", "headers": headers, "scheme": "http", "root_path": "",
            "server": ("test", 80), "client": ("test", 1),
        }  # fmt: skip
        self._gone = asyncio.Event()
        self._task = asyncio.create_task(self._app(self._scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if not self._gone.is_set():
            await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.text += message.get("body", b"").decode()

    async def ticks(self, number: int) -> list[int]:
        """Wait for so many events; return their ticks."""
        for _ in range(500):
            found = [json.loads(line[5:]) for line in self.text.splitlines() if line.startswith("data:")]
            if len(found) >= number and self.text:
                return [entry["tick"] for entry in found]
            await asyncio.sleep(0.01)
        raise AssertionError(self.text)

    async def leave(self) -> None:
        self._gone.set()
        await asyncio.wait_for(self._task, 10)


def test_server_sent_events(make: Make) -> None:
    """New releases are told as they come; with Last-Event-ID also those that were missed; no more once one leaves."""
    one = make()
    one.post(crowd(5))
    one.go_to(10)

    async def listen() -> None:
        new, again, all_, odd = (Listener(one, last) for last in (None, "1", "0", "999999999"))
        assert await all_.ticks(1) == [1]
        for one_ in (new, again, odd):
            await one_.ticks(0)
        assert one.service.announcer.listeners == 4
        await asyncio.to_thread(one.go_to, 30)
        assert await new.ticks(2) == await again.ticks(2) == await odd.ticks(2) == [2, 3]
        assert await all_.ticks(3) == [1, 2, 3]
        assert "id: 3" in new.text
        assert "event: release" in new.text
        assert "retry: 5000" in new.text
        await new.leave()
        await all_.leave()
        one.service.announcer.close()  # the service ends: so do they
        await asyncio.wait_for(asyncio.gather(again._task, odd._task), 10)
        assert one.service.announcer.listeners == 0

    asyncio.run(listen())


def test_listeners_have_bounds(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one = make()
    one.go_to(80)
    monkeypatch.setattr(releases, "_LISTENERS", 1)
    monkeypatch.setattr(releases, "_AGAIN", 3)

    async def listen() -> None:
        first = Listener(one, "1")
        assert await first.ticks(3) == [6, 7, 8]
        second = Listener(one)
        await asyncio.wait_for(second._task, 10)
        assert second.status == 429
        await first.leave()

    asyncio.run(listen())
    assert one.get("/v1/stream", headers={"Last-Event-ID": "x"}).status_code == 422
