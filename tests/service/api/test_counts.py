"""Counts over HTTP are those of the releases themselves, and no question costs more than it may."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import shapely
from shapely.geometry import mapping

from phdstream.service.api import counts
from phdstream.service.api.problems import ProblemError
from tests.service.api.serving import Served

RECTANGLES = [[0, 40, 10, 50], [2.5, 42.5, 3.5, 43.5], [6, 46, 8, 48], [9, 49, 10, 50]]
POLYGONS = [shapely.box(0, 40, 10, 50), shapely.Point(3, 43).buffer(1), shapely.Point(7, 47).buffer(2)]
ENDS = ("value", "low", "high", "noise_low", "noise_high", "stderr")
SHAPES: list[Any] = [mapping(shape) for shape in POLYGONS]


def ask(one: Served, **question: Any) -> Any:
    return one.client.post("/v1/counts", json=question)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("kind", ["rectangles", "polygons"])
def test_equal_to_those_of_releases(released: Served, kind: str, confidence: float) -> None:
    areas = RECTANGLES if kind == "rectangles" else SHAPES
    answer = ask(released, **{kind: areas}, first=1, last=3, confidence=confidence).json()
    assert (answer["ticks"], answer["missing"], answer["confidence"]) == ([1, 2, 3], [], confidence)
    for i, tick in enumerate((1, 2, 3)):
        release = released.service.archive.release(tick)
        own = release.count(RECTANGLES, confidence) if kind == "rectangles" else release.count_in(POLYGONS, confidence)
        for end in ENDS:
            assert np.array_equal(answer[end][i], getattr(own, end)), end


def test_one_rectangle(released: Served) -> None:
    one = released.get("/v1/counts?bbox=2.5,42.5,3.5,43.5").json()
    many = ask(released, rectangles=RECTANGLES).json()
    assert one["ticks"] == many["ticks"] == [3]
    assert one["value"][0][0] == many["value"][0][1]
    assert one["privacy"] == released.service.archive.release(3).privacy
    assert released.get("/v1/counts?bbox=2.5,42.5,3.5,43.5&first=2&last=99").json()["ticks"] == [2, 3]


def test_a_tick_that_is_not_there(released: Served) -> None:
    """It is said to be missing, and the others are counted."""
    path = released.service.archive._path(2)
    hidden = path.with_suffix(".hidden")
    path.rename(hidden)
    try:
        answer = ask(released, rectangles=RECTANGLES, first=1).json()
        assert (answer["ticks"], answer["missing"]) == ([1, 3], [2])
        assert len(answer["value"]) == 2
    finally:
        hidden.rename(path)
    assert ask(released, rectangles=RECTANGLES, first=7).json()["ticks"] == []


BAD: list[dict[str, Any]] = [
    {}, {"rectangles": RECTANGLES, "polygons": SHAPES}, {"rectangles": None}, {"rectangles": [[1, 2, 3]]},
    {"rectangles": [[0, 40, 1, 41], [1]]}, {"rectangles": [[]]}, {"rectangles": [[1, 41, 0, 40]]},
    {"rectangles": [["x"] * 4]}, {"rectangles": [[None] * 4]}, {"rectangles": [[[0]] * 4]}, {"rectangles": "x"},
    {"rectangles": RECTANGLES * 251}, {"polygons": SHAPES * 334}, {"polygons": [{}]},
    {"polygons": [{"type": "Polygon"}]},
    {"polygons": [{"type": "Point", "coordinates": [1, 2]}]}, {"polygons": [{"type": "Polygon", "coordinates": []}]},
    {"polygons": [{"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}]}, {"polygons": ["x"]},
    {"polygons": [{"type": "Polygon", "coordinates": [[[0, 0], [1, "a"], [1, 1], [0, 0]]]}]},
    {"polygons": [{"type": "Polygon", "coordinates": [[[0, 0], [1e999, 0], [1, 1], [0, 0]]]}]},
    {"polygons": [{"type": "GeometryCollection", "geometries": []}]}, {"polygons": [{"\ud800": 1}]},
    {"polygons": [{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {}}]},
    {"rectangles": RECTANGLES, "confidence": 1}, {"rectangles": RECTANGLES, "confidence": "\ud800"},
    {"rectangles": RECTANGLES, "first": 0}, {"rectangles": RECTANGLES, "last": 10**10},
]  # fmt: skip


@pytest.mark.parametrize("question", BAD, ids=range(len(BAD)))
def test_questions_that_are_none(released: Served, question: dict[str, Any]) -> None:
    text = json.dumps(question).replace("Infinity", "1e999")
    answer = released.client.post("/v1/counts", content=text, headers={"Content-Type": "application/json"})
    if answer.status_code == 200:  # an empty area holds nothing, and is an area
        assert question in ({"polygons": [{"type": "Polygon", "coordinates": []}]}, {"rectangles": [[1, 41, 0, 40]]})
    else:
        assert answer.status_code == 422, answer.text
        assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5000, b'{"rectangles": [[' + b"1" * 9999 + b"]]}"]
)
def test_bodies_that_are_no_question(released: Served, body: bytes) -> None:
    answer = released.client.post("/v1/counts", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "bbox",
    ["", "1", "1,2", "a,b,c,d", "nan,1,2,3", "1,2,3", "1,2,3,4,5", "1e999,2,3,4", "-,2,3,4", "1,2,,4", "٣,1,2,3"],
)
def test_rectangles_that_are_none(released: Served, bbox: str) -> None:
    assert released.get("/v1/counts", params={"bbox": bbox}).status_code == 422


def test_bounds_of_cost(released: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    square = {"rectangles": [RECTANGLES[0]]}
    monkeypatch.setattr(counts, "MOST_TICKS", 2)
    assert ask(released, **square, first=2).status_code == 200
    assert ask(released, **square, first=1).status_code == 422
    assert ask(released, rectangles=[], first=1).status_code == 422
    monkeypatch.undo()
    monkeypatch.setattr(counts, "MOST_ANSWERS", 8)
    assert ask(released, rectangles=RECTANGLES, first=2).status_code == 200
    assert ask(released, rectangles=RECTANGLES, first=1).status_code == 422
    monkeypatch.undo()
    monkeypatch.setattr(counts, "MOST_VERTICES", sum(shapely.get_num_coordinates(POLYGONS)) * 2)
    assert ask(released, polygons=SHAPES, first=2).status_code == 200
    assert ask(released, polygons=SHAPES, first=1).status_code == 422


def test_questions_that_take_long_keep_no_one_waiting(released: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many wait for answers, the service is healthy, takes events, and refuses further questions."""
    go, begun = threading.Event(), threading.Semaphore(0)

    def long(*_: Any) -> Any:
        begun.release()
        assert go.wait(30)
        raise ProblemError(404, "x")

    monkeypatch.setattr(counts, "_answer", long)
    monkeypatch.setattr(counts, "_ROOM", threading.BoundedSemaphore(60))
    with ThreadPoolExecutor(60) as pool:
        asked = [pool.submit(ask, released, rectangles=RECTANGLES) for _ in range(60)]
        for _ in range(4):
            assert begun.acquire(timeout=30)
        while counts._ROOM._value:
            pass
        assert released.get("/v1/health").status_code == 200
        assert released.post(b"{}").status_code == 422
        assert ask(released, rectangles=RECTANGLES).status_code == 429
        go.set()
        assert {one.result().status_code for one in asked} == {404}
    monkeypatch.undo()
    assert ask(released, rectangles=RECTANGLES).status_code == 200
