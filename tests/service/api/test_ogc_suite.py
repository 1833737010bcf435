"""The standard's own tests (OGC 17-069r4, annex A): by our own hand, and by OGC's suite where its jar is at hand.

The suite is ``ets-ogcapi-features10``, as one jar (``-aio``) for Java 17. ``PHDSTREAM_OGC_SUITE`` says where it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
import shapely

from tests.service.api.served import Served, listening

GEOJSON, OPENAPI = "application/geo+json", "application/vnd.oai.openapi+json;version=3.0"
PROPERTIES = '<?xml version="1.0"?><properties version="1.0"><entry key="iut">{}</entry></properties>'
BOXES = [
    (-1.5, 50.0, 1.5, 53.0), (-80.0, -5.0, -70.0, 5.0), (177.0, 65.0, -177.0, 70.0), (-180.0, 85.0, 180.0, 90.0),
    (-180.0, -90.0, 180.0, -85.0),
]  # fmt: skip
"""Across the meridian, the equator and the antimeridian, and around the poles."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("suite")
    served = Served(folder)
    for _ in range(3):
        served.release(800)
    with listening(folder) as root:
        yield f"{root}/v1/ogc"


def get(address: str, media: str, status: int = 200, **parameters: Any) -> Any:
    answer = httpx.get(address, headers={"Accept": media}, params=parameters or None, timeout=30)
    assert answer.status_code == status, answer.text
    assert answer.http_version == "HTTP/1.1"
    assert answer.headers["content-type"] == (media if status == 200 else "application/problem+json")
    return answer.json()


def linked(page: dict[str, Any], rel: str, media: str) -> str:
    return str(next(each["href"] for each in page["links"] if (each["rel"], each["type"]) == (rel, media)))


def there(address: str) -> list[dict[str, Any]]:
    return list(
        get(linked(get(address, "application/json"), "data", "application/json"), "application/json")["collections"]
    )


def test_landing_page_description_and_conformance(address: str) -> None:
    for root in (address, f"{address}/"):
        page = get(root, "application/json")
        api = get(linked(page, "service-desc", OPENAPI), OPENAPI)
        assert api["openapi"].startswith("3.0.")
        classes = get(linked(page, "conformance", "application/json"), "application/json")["conformsTo"]
        assert {each.rpartition("/")[2] for each in classes} == {"core", "oas30", "geojson"}
        for each in there(root):
            parameters = api["paths"][f"/collections/{each['id']}/items"]["get"]["parameters"]
            assert {"limit", "bbox", "datetime"} <= {one["$ref"].rpartition("/")[2] for one in parameters}


def test_collections(address: str) -> None:
    for each in there(address):
        assert get(linked(each, "self", "application/json"), "application/json") == each
        assert linked(each, "items", GEOJSON)
        west, south, east, north = each["extent"]["spatial"]["bbox"][0]
        assert -180 <= west <= east <= 180
        assert -90 <= south <= north <= 90


def check_features(page: dict[str, Any]) -> list[Any]:
    """Check a page of features and those after it; return the shapes of the page's own."""
    assert page["type"] == "FeatureCollection"
    assert linked(page, "self", GEOJSON).startswith("http://")
    assert all(link["rel"] and link["type"] for link in page["links"])
    assert abs(datetime.now(UTC) - datetime.fromisoformat(page["timeStamp"])) < timedelta(minutes=1)
    assert page["numberReturned"] == len(page["features"])
    number, last = len(page["features"]), page
    while any(link["rel"] == "next" for link in last["links"]) and number < 5000:
        last = get(linked(last, "next", GEOJSON).replace("limit=1&", "limit=1000&"), GEOJSON)
        number += len(last["features"])
    assert number == page["numberMatched"]
    shapes = [shapely.from_geojson(json.dumps(each["geometry"])) for each in page["features"]]
    assert all(shapely.box(-180, -90, 180, 90).covers(shape) for shape in shapes)
    return shapes


def test_features_and_limit(address: str) -> None:
    for each in there(address):
        items = linked(each, "items", GEOJSON)
        assert check_features(get(items, GEOJSON))
        for limit in (1, 100, 10_000, 10_001):
            assert len(check_features(get(items, GEOJSON, limit=limit))) <= limit


def test_features_by_bbox(address: str) -> None:
    for each in there(address):
        for west, south, east, north in [*BOXES, tuple(each["extent"]["spatial"]["bbox"][0])]:
            page = get(linked(each, "items", GEOJSON), GEOJSON, bbox=f"{west},{south},{east},{north}")
            for shape in check_features(page):
                assert west <= east
                assert shapely.box(west, south, east, north).intersects(shape)


def test_features_by_datetime(address: str) -> None:
    for each in there(address):
        begin, end = map(datetime.fromisoformat, each["extent"]["temporal"]["interval"][0])
        quarter = (end - begin) / 4
        first, second = ((begin + quarter * n).strftime("%Y-%m-%dT%H:%M:%SZ") for n in (1, 2))
        for asked in (begin.strftime("%Y-%m-%dT%H:%M:%SZ"), f"{first}/{second}", f"{begin.date()}/P2D"):
            page = get(linked(each, "items", GEOJSON), GEOJSON, datetime=asked)
            assert check_features(page)


def test_wrong_and_unknown_parameters(address: str) -> None:
    for each in there(address):
        get(linked(each, "items", GEOJSON), GEOJSON, 400, limit="unlimited")
        get(linked(each, "items", GEOJSON), GEOJSON, 400, unknownQueryParameter12345="1")


def test_feature(address: str) -> None:
    for each in there(address):
        items = linked(each, "items", GEOJSON)
        feature = get(f"{items}/{get(items, GEOJSON)['features'][0]['id']}", GEOJSON)
        assert linked(feature, "self", GEOJSON)
        assert linked(feature, "collection", "application/json") == linked(each, "self", "application/json")


@pytest.mark.slow
def test_the_official_suite(address: str, tmp_path: Path) -> None:
    jar = os.environ.get("PHDSTREAM_OGC_SUITE", "")
    if not jar:
        pytest.skip("PHDSTREAM_OGC_SUITE names no jar of ets-ogcapi-features10: CI's Maven registry does not have it")
    if not shutil.which("java"):
        pytest.fail("the suite needs Java 17, and there is no java here")
    (tmp_path / "run.xml").write_text(PROPERTIES.format(address))
    command = ["java", "-jar", jar, "-o", str(tmp_path), str(tmp_path / "run.xml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    results = list(tmp_path.rglob("testng-results.xml"))
    assert results, done.stdout + done.stderr
    methods = ElementTree.parse(results[0]).iter("test-method")
    ended = Counter(each.get("status") for each in methods if each.get("is-config") != "true")
    assert ended["PASS"], ended
    assert ended["FAIL"] == 0, ended
