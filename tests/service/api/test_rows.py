"""A stream of rows over HTTP: bodies in, all columns out, counts under conditions; the page and layers of places."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from phdstream.service.bodies import ARROW
from tests.service.api.serving import BOX, Served, arrow, crowd, serving

DOMAIN = f"""type = "product"
[domain.place]
{BOX}
depth = 14
[[domain.attributes]]
type = "category"
name = "vehicle"
values = ["bus", "tram"]
[[domain.attributes]]
type = "bins"
name = "age"
edges = [0, 18, 65, 120]
[[domain.attributes]]
type = "day_of_week"
name = "day"
column = "time"
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    rng = np.random.default_rng(1)
    with serving(tmp_path_factory.mktemp("rows"), domain=DOMAIN) as one:
        for tick in (1, 2):
            rows = [
                row | {"vehicle": "bus" if rng.random() < 0.7 else "tram", "age": float(rng.uniform(0, 90))}
                for row in crowd(10 * tick - 5, 600, seed=tick)
            ]
            rows[0]["vehicle"], rows[1]["age"] = "rocket", 1000.0
            kind = {"kind": ARROW} if tick == 2 else {}
            answer = one.post(arrow(rows) if kind else rows, **kind)
            assert answer.status_code == 200, answer.text
            assert [each["rows"] for each in answer.json()["rejected"]] == [2]
            one.go_to(10 * tick + 1)
        yield one


COLUMNS = ["x", "y", "vehicle", "age", "day"]


def test_points_and_changes_have_all_columns(served: Served) -> None:
    points = served.get("/v1/releases/2/points?f=json").json()["points"]
    assert list(points) == COLUMNS
    assert set(points["vehicle"]) == {"bus", "tram"}
    assert set(points["day"]) <= {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
    stream = pa.ipc.open_stream(served.get("/v1/releases/2/points?f=arrow").content).read_all()
    assert stream["vehicle"].to_pylist() == points["vehicle"]
    parquet = pq.read_table(io.BytesIO(served.get("/v1/releases/2/points?f=geoparquet").content))
    assert parquet.column_names == ["tick", *COLUMNS, "geometry"]
    features = served.get("/v1/releases/2/points?f=geojson").json()["features"]
    assert set(features[0]["properties"]) == {"tick", "vehicle", "age", "day"}
    csv = served.get("/v1/releases/2/changes?f=csv").text.splitlines()
    assert csv[0].replace('"', "") == "tick,x,y,vehicle,age,day,sign"
    cells = served.get("/v1/releases/2/cells?f=json").json()["cells"]
    assert {"vehicle", "age", "day", "count"} <= set(cells)


def test_counts_under_conditions(served: Served) -> None:
    def count(**more: object) -> float:
        answer = served.client.post("/v1/counts", json={"rectangles": [[0, 40, 10, 50]]} | more)
        assert answer.status_code == 200, answer.text
        return float(answer.json()["value"][0][0])

    everything = count()
    bus, tram = count(where={"vehicle": "bus"}), count(where={"vehicle": ["tram"]})
    assert bus + tram == pytest.approx(everything)
    assert bus == pytest.approx(0.7 * everything, rel=0.15)
    assert count(where={"age": [0, 18], "day": "Fri"}) < 0.5 * everything
    refused = served.client.post("/v1/counts", json={"rectangles": [[0, 40, 10, 50]], "where": {"vehicle": "trm"}})
    assert refused.status_code == 422
    assert "did you mean 'tram'" in refused.text


def test_the_page_and_the_layers_show_places(served: Served) -> None:
    facts = served.get("/v1/page").json()
    assert facts["names"] == ["x", "y"]
    assert facts["frame"] == [0, 40, 10, 50]
    assert len(served.get("/v1/page/ticks/2").content) > 100
    items = served.get("/v1/ogc/collections/points/items?limit=5").json()
    assert items["features"][0]["geometry"]["type"] == "Point"
    cells = served.get("/v1/ogc/collections/cells/items?limit=5").json()
    assert "vehicle" in cells["features"][0]["properties"]


def test_the_folder_says_what_its_domain_is(served: Served) -> None:
    folder: Path = served.folder / "releases"
    assert json.loads((folder / "domain.json").read_text())["attributes"][0]["values"] == ["bus", "tram"]
