"""OGC API - Features: what its standard demands of each page, and what clients trip over."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from fastapi import FastAPI

import phdstream as phd
from phdstream.domains.globe import Globe
from phdstream.io.sources.clock import Clock
from tests.service.api.served import Served, listening

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

CLASSES = "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    served = Served(tmp_path_factory.mktemp("ogc"))
    for _ in range(3):
        served.release()
    return served


@pytest.fixture
def client(served: Served) -> Iterator[TestClient]:
    with TestClient(served.app) as client:
        yield client


def get(client: TestClient, path: str, status: int = 200, **parameters: Any) -> Any:
    answer = client.get(path if path.startswith("http") else f"/v1/ogc{path}", params=parameters or None)
    assert answer.status_code == status, answer.text
    return answer.json()


def link(page: dict[str, Any], rel: str) -> str:
    (found,) = [link["href"] for link in page["links"] if link["rel"] == rel]
    return str(found)


def pages(client: TestClient, path: str, **parameters: Any) -> Iterator[dict[str, Any]]:
    page = get(client, path, **parameters)
    yield page
    while any(link["rel"] == "next" for link in page["links"]):
        page = get(client, link(page, "next"))
        yield page


def all_links(page: Any) -> Iterator[dict[str, Any]]:
    if isinstance(page, dict):
        yield from page.get("links", [])
        for value in page.values():
            yield from all_links(value)
    elif isinstance(page, list):
        for value in page:
            yield from all_links(value)


PAGES = [
    "", "/", "/conformance", "/collections", "/collections/points", "/collections/cells",
    "/collections/points/items", "/collections/cells/items", "/collections/points/items/3-1",
]  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_links_are_absolute_and_typed_and_lead_somewhere(client: TestClient, path: str) -> None:
    for each in all_links(get(client, path)):
        assert each["href"].startswith("http://testserver/v1/ogc")
        assert each["rel"]
        assert client.get(each["href"]).headers["content-type"] == each["type"]


def test_links_follow_the_proxy_that_was_asked(client: TestClient) -> None:
    page = client.get("/v1/ogc", headers={"Host": "data.example:8080"}).json()
    assert link(page, "data") == "http://data.example:8080/v1/ogc/collections"


def test_links_name_the_stream_where_one_service_has_several(served: Served) -> None:
    several = FastAPI()
    several.mount("/harbour", served.app)
    with TestClient(several) as client:
        page = client.get("/harbour/v1/ogc").json()
        items = client.get("/harbour/v1/ogc/collections/points/items?limit=1").json()
        assert link(page, "self") == "http://testserver/harbour/v1/ogc"
        for each in [*all_links(page), *all_links(items)]:
            assert each["href"].startswith("http://testserver/harbour/v1/ogc")
            assert client.get(each["href"]).status_code == 200
        parts = client.get("/harbour/v1/releases/latest").json()["links"]
        assert parts["cells"] == "http://testserver/harbour/v1/releases/3/cells"


def test_landing_page_leads_to_everything(client: TestClient) -> None:
    page = get(client, "")
    assert {each["rel"] for each in page["links"]} == {"self", "service-desc", "conformance", "data"}
    assert get(client, link(page, "conformance")) == {
        "conformsTo": [f"{CLASSES}/core", f"{CLASSES}/oas30", f"{CLASSES}/geojson"]
    }
    assert [each["id"] for each in get(client, link(page, "data"))["collections"]] == ["points", "cells"]


def test_the_description_is_openapi_30_and_declares_the_parameters(client: TestClient) -> None:
    api = get(client, link(get(client, ""), "service-desc"))
    assert api["openapi"].startswith("3.0")
    assert api["servers"] == [{"url": "http://testserver/v1/ogc"}]
    limit = api["components"]["parameters"]["limit"]
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 1000}
    for name in ("limit", "bbox", "datetime"):
        about = api["components"]["parameters"][name]
        assert (about["in"], about["required"], about["style"], about["explode"]) == ("query", False, "form", False)
    identities = [path["get"]["operationId"] for path in api["paths"].values()]
    assert len(set(identities)) == len(identities)
    for path in api["paths"]:  # what is described is there
        get(client, path.replace("{featureId}", "3-1"))
    text = client.get("/v1/ogc/api").text
    for name in [part.partition('"')[0] for part in text.split('"$ref": "#/')[1:]]:
        found = api
        for step in name.split("/"):
            found = found[step]


def test_collections_say_where_and_when(client: TestClient) -> None:
    for each in get(client, "/collections")["collections"]:
        assert each == get(client, f"/collections/{each['id']}")
        assert each["extent"]["spatial"]["bbox"] == [[-74.3, 40.5, -73.7, 41.0]]
        assert each["extent"]["temporal"]["interval"] == [["2026-11-18T08:00:00Z", "2026-11-18T11:00:00Z"]]
        assert each["crs"] == ["http://www.opengis.net/def/crs/OGC/1.3/CRS84"]


def test_points_are_those_of_the_latest_release(served: Served, client: TestClient) -> None:
    page = get(client, "/collections/points/items", limit=10_000)
    points = served.archive.release(3).sample()
    assert page["numberMatched"] == page["numberReturned"] == len(points) == len(page["features"])
    assert [each["geometry"]["coordinates"] for each in page["features"]] == points.tolist()
    assert (page["tick"], page["privacy"]) == (3, "simulated, not private")
    assert {each["properties"]["tick"] for each in page["features"]} == {3}


def test_cells_are_those_of_the_latest_release(served: Served, client: TestClient) -> None:
    features = get(client, "/collections/cells/items", limit=10_000)["features"]
    cells = served.archive.release(3).cells().to_pylist()
    for row, feature in zip(cells, features, strict=True):
        assert feature["properties"] == row | {"tick": 3, "node": str(row["node"])}
        box = shapely.box(row["lon_min"], row["lat_min"], row["lon_max"], row["lat_max"])
        assert shapely.from_geojson(json.dumps(feature["geometry"])) == box


def test_real_numbers_stay_real_for_clients_that_guess_types(client: TestClient) -> None:
    features = get(client, "/collections/cells/items")["features"]
    assert all(isinstance(each["properties"]["count"], float) for each in features)


@pytest.mark.parametrize("collection", ["points", "cells"])
@pytest.mark.parametrize("bbox", [None, "-74.1,40.6,-73.9,40.9"])
@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_pages_together_are_everything_once(client: TestClient, collection: str, bbox: str | None, limit: int) -> None:
    asked: dict[str, Any] = {"bbox": bbox} if bbox else {}
    whole = get(client, f"/collections/{collection}/items", limit=10_000, **asked)
    limit = max(limit, whole["numberMatched"] // 20)
    found = list(pages(client, f"/collections/{collection}/items", limit=limit, **asked))
    assert [each for page in found for each in page["features"]] == whole["features"]
    assert all(page["numberReturned"] == len(page["features"]) <= limit for page in found)
    assert {page["numberMatched"] for page in found} == {whole["numberMatched"]}
    if len(found) > 1:
        assert get(client, link(found[1], "prev"))["features"] == found[0]["features"]


def test_a_release_between_two_pages_changes_nothing(tmp_path: Path) -> None:
    served = Served(tmp_path)
    before = served.release(300)
    with TestClient(served.app) as client:
        page = get(client, "/collections/points/items", limit=100)
        served.release(300)
        found = page["features"]
        while any(each["rel"] == "next" for each in page["links"]):
            page = get(client, link(page, "next"))
            found += page["features"]
        assert [each["geometry"]["coordinates"] for each in found] == before.sample().tolist()
        assert get(client, "/collections/points/items")["tick"] == 2


def test_ids_have_no_dots_and_lead_to_their_feature(client: TestClient) -> None:
    for collection in ("points", "cells"):
        features = get(client, f"/collections/{collection}/items", limit=10_000)["features"]
        ids = [each["id"] for each in features]
        assert len(set(ids)) == len(ids)
        assert all("." not in each for each in ids)
        for each in (features[0], features[-1]):
            one = get(client, f"/collections/{collection}/items/{each['id']}")
            assert {key: one[key] for key in each} == each
            assert {link["rel"] for link in one["links"]} == {"self", "collection"}


@pytest.mark.parametrize(
    "identity", ["3-0", "3-999999", "4-1", "0-1", "3", "3-", "-1", "3-01", "x", "3-1-1", "³-1", "3-1e3"]
)
def test_no_such_feature(client: TestClient, identity: str) -> None:
    get(client, f"/collections/points/items/{identity}", 404)


@pytest.mark.parametrize(
    "path", ["/collections/lines", "/collections/lines/items", "/collections/lines/items/1-1", "/x"]
)
def test_no_such_collection(client: TestClient, path: str) -> None:
    assert get(client, path, 404)["title"] == "Not Found"


@pytest.mark.parametrize("path", [*PAGES, "/api"])
def test_unknown_parameters_are_refused_everywhere(client: TestClient, path: str) -> None:
    assert "unknown parameter" in get(client, path, 400, asdf="1")["detail"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("limit", ["0", "-1", "x", "", "1.5", "1e3", "²"]),
        ("offset", ["-1", "x", "1.0"]),
        ("tick", ["0", "latest", "-1"]),
        ("bbox", ["", "1,2,3", "1,2,3,4,5", "1,2,3,4,5,6,7", "a,b,c,d", "nan,0,1,1", "0,inf,1,1", "0,2,1,1"]),
        ("datetime", ["x", "2026", "2026-13-01", "2026-11-18T25:00:00Z", "2026-11-19/2026-11-18", "2026-11-18/P", "/x",
                      "2026-11-18T08:00:00Z/2026-11-18T09:00:00Z/..", "../P2D/", "2026-11-18/P999999W",
                      "2026-11-18T08:00"]),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(client: TestClient, name: str, values: list[str]) -> None:
    for value in values:
        get(client, "/collections/points/items", 400, **{name: value})


def test_a_parameter_twice_is_refused(client: TestClient) -> None:
    assert client.get("/v1/ogc/collections/points/items?limit=1&limit=2").status_code == 400


def test_more_than_the_largest_page_is_the_largest_page(client: TestClient) -> None:
    page = get(client, "/collections/points/items", limit=10**11)
    assert page["numberReturned"] == page["numberMatched"]
    assert get(client, "/collections/points/items", offset=10**11)["features"] == []


@pytest.mark.parametrize(
    ("bbox", "west", "east"),
    [
        ("-74.1,40.6,-73.9,40.8", -74.1, -73.9),
        ("-74.1,40.6,0,-73.9,40.8,9", -74.1, -73.9),
        ("-74.1,40.6,180,40.8", -74.1, 180),
    ],
)
def test_bbox_selects_what_meets_it(served: Served, client: TestClient, bbox: str, west: float, east: float) -> None:
    x, y = served.archive.release(3).sample().T
    inside = (x >= west) & (x <= east) & (y >= 40.6) & (y <= 40.8)
    assert get(client, "/collections/points/items", bbox=bbox)["numberMatched"] == np.count_nonzero(inside)
    cells = get(client, "/collections/cells/items", bbox=bbox, limit=10_000)["features"]
    table = served.archive.release(3).cells().to_pandas()
    meets = (table.lon_max >= west) & (table.lon_min <= east) & (table.lat_max >= 40.6) & (table.lat_min <= 40.8)
    assert [each["properties"]["node"] for each in cells] == table.node[meets].astype(str).tolist()


def test_bbox_across_the_antimeridian(tmp_path: Path) -> None:
    served = Served(tmp_path, Globe(depth=8))
    points = np.array([[179.0, 67.0], [-179.0, 67.0], [0.0, 51.0]]).repeat(400, axis=0)
    served.folder.publish(served.stream.update(points))
    x, y = served.archive.release(1).sample().T
    with TestClient(served.app) as client:
        page = get(client, "/collections/points/items", bbox="170,60,-170,75", limit=10_000)
        inside = ((x >= 170) | (x <= -170)) & (y >= 60) & (y <= 75)
        assert page["numberMatched"] == np.count_nonzero(inside) > 100
        cells = get(client, "/collections/cells/items", limit=10_000)["features"]
        bounds = np.array([shapely.from_geojson(json.dumps(each["geometry"])).bounds for each in cells])
        assert (bounds[:, 0] >= -180).all()
        assert (bounds[:, 2] <= 180).all()


@pytest.mark.parametrize(
    ("asked", "tick"),
    [
        ("2026-11-18T08:00:00Z", 1), ("2026-11-18T08:59:59.999Z", 1), ("2026-11-18T09:00:00Z", 2),
        ("2026-11-18T10:30:00+01:00", 2), ("2026-11-18t09:00:00z", 2), ("2026-11-18T10:59:59Z", 3),
        ("2026-11-18T11:00:00Z", None), ("2026-11-18T07:59:59Z", None), ("2026-11-18", 3), ("2026-11-17", None),
        ("2026-11-18T08:10:00Z/2026-11-18T09:10:00Z", 2), ("2026-11-18T08:00:00Z/2026-11-18T09:00:00Z", 2),
        ("../2026-11-18T08:30:00Z", 1), ("/2026-11-18T08:30:00Z", 1), ("../2026-11-17", None),
        ("2026-11-18T10:30:00Z/..", 3), ("2026-11-18T10:30:00Z/", 3), ("2026-11-18T11:00:00Z/..", None),
        ("../..", 3), ("2026-11-18/P2D", 3), ("2026-11-18T08:00:00Z/PT30M", 1), ("2026-11-10/P1W", None),
        ("0001-01-01/9999-12-31", 3), ("0001-01-01", None), ("9999-12-31", None),
    ],
)  # fmt: skip
def test_datetime_names_the_last_release_then(client: TestClient, asked: str, tick: int | None) -> None:
    page = get(client, "/collections/points/items", datetime=asked)
    assert page.get("tick") == tick
    assert bool(page["features"]) == (tick is not None)
    assert page["numberMatched"] >= page["numberReturned"] == len(page["features"])


def test_tick_names_a_release(client: TestClient) -> None:
    assert get(client, "/collections/points/items", tick=2)["tick"] == 2
    assert get(client, "/collections/points/items", tick=2, datetime="2026-11-18T09:30:00Z")["tick"] == 2
    assert get(client, "/collections/points/items", tick=2, datetime="2026-11-18T08:30:00Z")["features"] == []
    get(client, "/collections/points/items", 404, tick=4)


def test_a_clock_without_a_zone_is_the_machines(tmp_path: Path) -> None:
    start = datetime(2026, 11, 18, 8)
    served = Served(tmp_path, clock=Clock(start, timedelta(hours=1), None))
    served.release()
    moment = (start + timedelta(minutes=30)).astimezone().isoformat()
    with TestClient(served.app) as client:
        assert get(client, "/collections/points/items", datetime=moment)["tick"] == 1


def test_before_the_first_release_collections_are_empty(tmp_path: Path) -> None:
    with TestClient(Served(tmp_path).app) as client:
        assert "temporal" not in get(client, "/collections/points")["extent"]
        asked: list[dict[str, Any]] = [{}, {"datetime": "2026-11-18"}, {"bbox": "0,0,1,1"}]
        for parameters in asked:
            page = get(client, "/collections/points/items", **parameters)
            assert (page["features"], page["numberMatched"]) == ([], 0)
        get(client, "/collections/points/items/1-1", 404)


def test_another_coordinate_system_is_converted(tmp_path: Path) -> None:
    served = Served(tmp_path, phd.Box([(300_000, 400_000), (5_600_000, 5_700_000)], crs="EPSG:25832"))
    points = served.release(300).sample()
    from pyproj import Transformer

    lon, lat = Transformer.from_crs("EPSG:25832", "EPSG:4326", always_xy=True).transform(*points.T)
    with TestClient(served.app) as client:
        page = get(client, "/collections/points/items", limit=10_000)
        found = np.array([each["geometry"]["coordinates"] for each in page["features"]])
        np.testing.assert_allclose(found, np.column_stack([lon, lat]), atol=1e-7)
        ((west, south, east, north),) = get(client, "/collections/cells")["extent"]["spatial"]["bbox"]
        assert west <= found[:, 0].min()
        assert found[:, 1].max() <= north
        cells = get(client, "/collections/cells/items", bbox=f"{west},{south},{east},{north}", limit=10_000)
        assert cells["numberMatched"] == served.archive.release(1).leaves.size


@pytest.mark.parametrize("domain", [phd.Box([(0, 1), (0, 1)]), phd.Box([(0, 1)] * 3, crs="EPSG:4979"), phd.Cube(4)])
def test_a_stream_on_no_map_has_no_collections(tmp_path: Path, domain: Any) -> None:
    served = Served(tmp_path, domain)
    with TestClient(served.app) as client:
        for path in ("", "/collections", "/collections/points/items"):
            assert "on no map" in get(client, path, 404)["detail"]


@pytest.mark.parametrize("path", [*PAGES, "/api"])
def test_a_token_comes_by_header(tmp_path: Path, path: str) -> None:
    served = Served(tmp_path, public=False)
    for _ in range(3):
        served.release(50)
    reads, sends = served.tokens.add("reader", ("read",)), served.tokens.add("sender", ("ingest",))
    with TestClient(served.app) as client:
        get(client, path, 401)
        assert client.get(f"/v1/ogc{path}", headers={"Authorization": f"Bearer {sends}"}).status_code == 403
        assert client.get(f"/v1/ogc{path}", headers={"Authorization": f"Bearer {reads}"}).status_code == 200
        api = client.get("/v1/ogc/api", headers={"Authorization": f"Bearer {reads}"}).json()
        assert api["security"] == [{"token": []}]


@pytest.mark.slow
def test_gdal_reads_200_000_points(tmp_path: Path) -> None:
    import pyogrio

    served = Served(tmp_path)
    points = served.release(200_000).sample()
    assert len(points) > 199_000
    with listening(tmp_path) as address:
        frame = pyogrio.read_dataframe(f"OAPIF:{address}/v1/ogc", layer="points")
        assert len(frame) == len(points)
        np.testing.assert_allclose(frame.total_bounds, [*points.min(axis=0), *points.max(axis=0)], atol=1e-9)
        cells = pyogrio.read_dataframe(f"OAPIF:{address}/v1/ogc", layer="cells")
        assert cells.points.sum() == len(points)
        part = pyogrio.read_dataframe(f"OAPIF:{address}/v1/ogc", layer="points", bbox=(-74.0, 40.7, -73.9, 40.8))
        x, y = points.T
        assert len(part) == np.count_nonzero((x >= -74) & (x <= -73.9) & (y >= 40.7) & (y <= 40.8))


def test_gdal_sends_a_token(tmp_path: Path) -> None:
    import pyogrio

    served = Served(tmp_path)
    number = len(served.release(300).sample())
    token = served.tokens.add("reader", ("read",))
    with listening(tmp_path, token) as address:
        source = f"OAPIF:{address}/v1/ogc"
        with pytest.raises(pyogrio.errors.DataSourceError):
            pyogrio.read_dataframe(source, layer="points")
        pyogrio.set_gdal_config_options({"GDAL_HTTP_AUTH": "BEARER", "GDAL_HTTP_BEARER": token})
        try:
            assert len(pyogrio.read_dataframe(source, layer="points")) == number
        finally:
            pyogrio.set_gdal_config_options({"GDAL_HTTP_AUTH": None, "GDAL_HTTP_BEARER": None})
