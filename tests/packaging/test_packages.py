"""The wheel and the sdist: whole, the same from both, and of use in an environment that has only what they ask for."""

from __future__ import annotations

import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.metadata import Metadata

import phdstream as phd
from tests.packaging.environment import ROOT, CleanEnvironment, build

pytestmark = pytest.mark.slow
CITY = """
import numpy as np, phdstream as phd
city = phd.Box([(-74.3, -73.7), (40.5, 41.0)], names=("lon", "lat"), crs="EPSG:4326")
stream = phd.TrackingStream(city, epsilon=1.0, unit=phd.Event())
release = stream.update(np.random.default_rng(1).normal((-73.98, 40.75), 0.02, size=(5000, 2)))
"""
USES = {
    "geo": "import geopandas, shapely\n"
    "layer = geopandas.GeoDataFrame({'a': [1]}, geometry=[shapely.box(-74, 40.7, -73.9, 40.8)], crs='EPSG:4326')\n"
    "assert release.count_in(layer.to_crs('EPSG:2263'))['value'][0] > 1000\n"
    "assert len(release.to_h3(6, to='geopandas')) > 10",
    "plot": "release.plot('uncertainty').figure.savefig('map.png')",
    "page": "assert 'iframe' in release.explore()._repr_html_()",
    "service": "import phdstream.service.api.app",
    "postgres": "import phdstream.io.sinks.postgis, psycopg",
    "kafka": "import phdstream.io.sinks.kafka_topic, confluent_kafka",
    "redis": "import phdstream.io.sinks.redis_stream, redis",
    "spark": "import phdstream.engines.spark.counting, pyspark",
}
LACKS = {
    "release.cells('geopandas')": "phdstream[geo]",
    "release.to_h3(6)": "phdstream[geo]",
    "release.plot()": "phdstream[plot]",
    "release.explore()": "phdstream[page]",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    out = tmp_path_factory.mktemp("dist")
    return build(ROOT, "wheel", out), build(ROOT, "sdist", out)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_the_wheel_has_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    found = contents(built[0])
    tops = {name.split("/")[0] for name in found}
    assert tops == {"phdstream", f"phdstream-{phd.__version__}.dist-info"}
    source = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*") if path.is_file()}
    packed = {name for name in found if name.startswith("phdstream/")}
    assert packed == {name for name in source if "__pycache__" not in name}
    assert "phdstream/py.typed" in packed
    assert any(name.endswith("licenses/LICENSE") for name in found)


def test_the_sdist_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = built
    with tarfile.open(sdist) as file:
        file.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    again = contents(build(source, "wheel", tmp_path / "out"))
    assert again == contents(wheel)
    names = {str(path.relative_to(source)) for path in source.rglob("*")}
    assert {"CITATION.cff", "CHANGELOG.md", "docs/tutorial.md", "tests/conftest.py", "Makefile"} <= names
    assert not [name for name in names if name.startswith(("docs/gallery/", "docs/api/", ".venv", "build"))]


def test_its_metadata_may_be_uploaded(built: tuple[Path, Path]) -> None:
    """Valid by the standard's own reader: names, specifiers, licence, classifiers; and it says what there is."""
    (text,) = [content for name, content in contents(built[0]).items() if name.endswith("/METADATA")]
    found = Metadata.from_email(text, validate=True)
    assert (found.name, str(found.version), found.license_expression) == ("phdstream", phd.__version__, "Apache-2.0")
    assert found.description_content_type == "text/markdown"
    assert {"docs", "geo", "page", "plot", "service"} <= set(found.provides_extra or [])
    message = Parser().parsestr(text.decode())
    assert "Typing :: Typed" in message.get_all("Classifier", [])
    assert "# phdstream" in str(found.description)


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {phd.__version__}\n" in text
    for name in ("Kumar", "Strohmer", "Vershynin", "An Algorithm for Streaming Differentially Private Data"):
        assert name in text


def test_alone_it_runs_and_says_what_is_lacking(built: tuple[Path, Path], tmp_path: Path) -> None:
    clean = CleanEnvironment(tmp_path / "env", built[0], [])
    assert clean.run("phdstream", "--version", cwd=tmp_path).stdout.strip() == f"phdstream {phd.__version__}"
    clean.run("-c", CITY + "assert release.cells().num_rows > 10", cwd=tmp_path)
    for call, extra in LACKS.items():
        done = clean.run("-c", CITY + call, cwd=tmp_path, check=False)
        assert "InputError: " in done.stderr, call
        assert extra in done.stderr, call
    for library in ("geopandas", "matplotlib", "fastapi", "pytest", "pandas", "opendp"):
        assert clean.run("-c", f"import {library}", cwd=tmp_path, check=False).returncode == 1, library


@pytest.mark.parametrize("extra", USES)
def test_each_extra_brings_what_it_is_for(built: tuple[Path, Path], tmp_path: Path, extra: str) -> None:
    clean = CleanEnvironment(tmp_path / "env", built[0], [extra])
    clean.run("-c", CITY + USES[extra], cwd=tmp_path)


def test_the_console_script_publishes_files(built: tuple[Path, Path], tmp_path: Path) -> None:
    """From a CSV to a report, with the extra that a page needs and no other."""
    clean = CleanEnvironment(tmp_path / "env", built[0], ["page"])
    lines = ["time,lon,lat", *(f"2026-03-0{1 + i % 3} 12:00:00,-73.9{i % 10},40.7{i % 7}" for i in range(900))]
    (tmp_path / "events.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "stream.toml").write_text(
        '[input]\nfiles = "events.csv"\ntime = "time"\ncoordinates = ["lon", "lat"]\n'
        '[ticks]\nevery = "1d"\nstart = 2026-03-01\nend = 2026-03-04\n'
        '[domain]\ntype = "box"\nbounds = [[-74.3, -73.7], [40.5, 41.0]]\n'
        '[privacy]\nepsilon = 1.0\nunit = "event"\n[output]\nreleases = "out"\nstate = "private"\n'
    )
    assert "Released ticks 1 to 3." in clean.run("phdstream", "run", "stream.toml", cwd=tmp_path).stdout
    clean.run("phdstream", "report", "out", cwd=tmp_path)
    assert (tmp_path / "report.html").stat().st_size > 100_000
    code = "import phdstream as phd; assert len(phd.read_releases('out')) == 3"
    clean.run("-c", code, cwd=tmp_path)
