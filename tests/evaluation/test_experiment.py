"""Experiments as files, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from phdstream.errors import ConfigError, InputError
from phdstream.evaluation import Experiment, MethodSpec, example, load_experiment, read_experiment, standard_methods
from phdstream.evaluation.setting import load_setting
from tests.evaluation.experiments import OWN, SMALL, small, write_events

FILE = """
methods = ["phdstream", "baseline-1"]
epsilons = [0.5, 1]
start_after = [0.1]
seeds = [1, 2]
measure_every = 10
[data]
circles = "growing"
points = 1000
"""


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    experiment = load_experiment(path)
    assert (experiment.name, experiment.base, experiment.private) == ("mine", tmp_path, False)
    assert len(list(experiment.trials())) == 8
    assert experiment.data == {"circles": "growing", "points": 1000, "batch": 500}


def test_the_example_is_an_experiment(tmp_path: Path) -> None:
    """It can be run as it is, once its file is there; what it says is what holds unless said."""
    (tmp_path / "own.toml").write_text(example())
    experiment = load_experiment(tmp_path / "own.toml")
    silent = {"name": "own", "data": experiment.data, "domain": experiment.domain}
    assert experiment == read_experiment(silent, tmp_path)
    assert experiment.methods[0] == "tracking-insert-only"
    assert experiment.private


def test_every_commented_line_of_the_example_can_be_said(tmp_path: Path) -> None:
    said = example().replace("# methods", "methods").replace("# lifetime", "lifetime")
    assert load(tmp_path, said).methods == ("tracking", "phdstream", "baseline-1")
    assert load(tmp_path, example().replace("# sign", "sign")).methods[0] == "tracking"
    assert load(tmp_path, example().replace("# points", "points")).data["points"] == 100_000
    box = 'type = "box"\nbounds = [[-74.3, -73.7], [40.5, 41.0]]\n'
    for kind, keys in {"region": ("polygons",), "network": ("lines", "snap", "tree_crs")}.items():
        said = example().replace(box, "")
        for key in (f'type = "{kind}"', *keys):
            said = said.replace(f"# {key}", key)
        assert set(load(tmp_path, said).domain) == {"type", *keys}


def load(folder: Path, text: str) -> Experiment:
    (folder / "some.toml").write_text(text)
    return load_experiment(folder / "some.toml")


def test_methods_from_outside() -> None:
    def more() -> Mapping[str, MethodSpec]:
        return {**standard_methods(), "mine": MethodSpec("Mine", standard_methods()["phdstream"].make)}

    experiment = read_experiment(SMALL | {"methods": ["mine"]}, methods=more)
    assert experiment.method("mine").label == "Mine"
    with pytest.raises(ConfigError, match="unknown method 'mine'"):
        read_experiment(SMALL | {"methods": ["mine"]})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"methods": ["phdstraem"]}, "unknown method 'phdstraem': did you mean 'phdstream'"),
        ({"methods": []}, "at least one"),
        ({"methods": ["phdstream", "phdstream"]}, "twice"),
        ({"epsilon": [1]}, "unknown key 'epsilon': did you mean 'epsilons'"),
        ({"epsilons": [0]}, "above 0"),
        ({"epsilons": ["1"]}, "above 0"),
        ({"seeds": [1.5]}, "whole"),
        ({"seeds": 3}, "list"),
        ({"start_after": [5]}, "share of the data"),
        ({"measure_every": 0}, "at least 1"),
        ({"queries": {"tiny": 3}}, "unknown key 'tiny'"),
        ({"queries": 3}, "section"),
        ({"data": {"circles": "square"}}, "circles are growing or moving, not 'square'"),
        ({"data": {"circles": "moving", "every": "1d"}}, r"\[data\] with 'circles' has an unknown key 'every'"),
        ({"data": {"circles": "growing", "points": 0}}, "at least 1"),
        ({"data": OWN["data"]}, r"\[domain\] is missing"),
        ({"data": {"file": "a.csv"}, "domain": {"type": "box"}}, "needs 'time'"),
        ({"data": OWN["data"] | {"file": ["a.csv"]}}, "non-empty text"),
        ({"data": OWN["data"] | {"coordinates": "lon,lat"}}, "list of column names"),
        ({"data": OWN["data"] | {"sign": "sign", "lifetime": "1d"}}, "cannot be combined"),
        ({"data": {"files": "a.csv"}}, "did you mean 'file'"),
        ({"data": "circles"}, "is missing"),
        ({"domain": {"type": "box", "bound": []}}, "did you mean 'bounds'"),
        ({"name": ""}, "non-empty"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read_experiment(SMALL | changes)


def test_files_that_are_not_there_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*none\.toml; phdstream evaluate --example"):
        load_experiment(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_experiment(tmp_path)
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(tmp_path, "methods = [")
    with pytest.raises(ConfigError, match=r"some\.toml: .*did you mean 'seeds'"):
        load(tmp_path, FILE.replace("seeds", "seed"))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*events\.parquet, which \[data\] file names"):
        load_setting(read_experiment(OWN, tmp_path))
    with pytest.raises(InputError, match=r"there is no file .*streets\.gpkg, which \[domain\] lines names"):
        load_setting(read_experiment(OWN | {"domain": {"type": "network", "lines": "streets.gpkg"}}, tmp_path))


def test_fewer_ticks_than_t0(tmp_path: Path) -> None:
    write_events(tmp_path / "events.parquet")
    with pytest.raises(ConfigError, match="start_after is 21, but the data has only 20 ticks"):
        load_setting(read_experiment(OWN | {"start_after": [21]}, tmp_path))


def test_events_all_outside(tmp_path: Path) -> None:
    write_events(tmp_path / "events.parquet")
    away = {"type": "box", "bounds": [[5, 6], [5, 6]]}
    with pytest.raises(InputError, match="no event lies in the domain"):
        load_setting(read_experiment(OWN | {"domain": away}, tmp_path))


def test_domains_without_rectangles_are_refused() -> None:
    with pytest.raises(ConfigError, match="box, region or network"):
        load_setting(small(domain={"type": "globe"}))


def test_keys_of_another_domain_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[domain\]"):
        load_setting(small(domain={"type": "region", "polygons": "land", "snap": 3}))
