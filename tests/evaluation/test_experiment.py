"""Experiments as files, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from phdstream.errors import ConfigError, InputError
from phdstream.evaluation import PRESETS, load_experiment, preset, read_experiment
from phdstream.evaluation.setting import load_setting
from tests.evaluation.experiments import OWN, SMALL, small, write_events

FILE = """
methods = ["phdstream", "baseline-1"]
epsilons = [0.5, 1]
start_after = [0.1]
seeds = [1, 2]
measure_every = 10
[data]
preset = "circles-a"
points = 1000
"""


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    experiment = load_experiment(path)
    assert (experiment.name, experiment.base, experiment.private) == ("mine", tmp_path, False)
    assert len(list(experiment.cells())) == 8
    assert experiment.data == {"circles": "a", "points": 1000, "batch": 500}


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("reduced", [False, True])
def test_every_preset_is_an_experiment(name: str, reduced: bool) -> None:
    experiment = read_experiment(preset(name, reduced))
    own = {"sensitivity": {"phdstream-record"}, "blocks": {"phdstream-block", "phdstream-block-16"}}
    compared = own.get(name.split("-")[-1], {"baseline-1", "baseline-3"})
    assert compared | {"phdstream"} <= set(experiment.methods)
    assert experiment.private == (not name.startswith("circles"))


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
        ({"data": {"preset": "circle-a"}}, "did you mean 'circles-a'"),
        ({"data": {"preset": "circles-a", "every": "1d"}}, "does not go with"),
        ({"data": {"preset": "circles-a", "points": 0}}, "at least 1"),
        ({"data": {"file": "events.parquet"}}, r"\[domain\] is missing"),
        ({"data": {"file": "a.csv"}, "domain": {"type": "box"}}, "needs 'time'"),
        ({"data": {"files": "a.csv"}}, "did you mean 'file'"),
        ({"data": "circles-a"}, "is missing"),
        ({"domain": {"type": "box", "bound": []}}, "did you mean 'bounds'"),
        ({"name": ""}, "non-empty"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read_experiment(SMALL | changes)


def test_files_that_are_not_there_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no experiment file"):
        load_experiment(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("methods = [")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_experiment(tmp_path / "bad.toml")
    (tmp_path / "wrong.toml").write_text(FILE.replace("seeds", "seed"))
    with pytest.raises(ConfigError, match=r"wrong\.toml: .*did you mean 'seeds'"):
        load_experiment(tmp_path / "wrong.toml")


def test_unknown_presets() -> None:
    with pytest.raises(ConfigError, match="did you mean 'circles-b'"):
        preset("circle-b")


def test_missing_data_says_what_to_get_and_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="SNAP") as error:
        load_setting(read_experiment(preset("gowalla"), tmp_path))
    assert "loc-gowalla_totalCheckins.txt.gz" in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert "--data-dir" in str(error.value)
    with pytest.raises(InputError, match="lines names"):
        load_setting(read_experiment(preset("uber-streets"), tmp_path))
    with pytest.raises(InputError, match=r"no file events\.parquet in"):
        load_setting(read_experiment(OWN, tmp_path))


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
