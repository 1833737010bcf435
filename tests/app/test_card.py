"""`phdstream card`: a valid entry for OpenDP's registry, honest about what is missing, and public."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from phdstream.app.about import ABOUT, read_about, registry_schema
from phdstream.app.card import MISSING, card, last_tick, missing
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import ConfigError, StateError
from tests.app.commands import phdstream
from tests.app.test_run import SIMULATED, table, write

ABOUT_ALL = """
[about]
title = "Where people are in X"
organisation = "Statistics X"
organisation_type = "Government"
description = "Where people are, hour by hour."
intended_use = "Planning of buses."
region = "X"
authors = ["A. Person"]
data = "Check-ins of passengers."
units = 100000
actors = "The office; the public."
tuning = "Nobody looked; ε was chosen by a board."
justification = "See the board's minutes."
sector = "Government"
contact = "privacy@example.org"
url = "https://example.org/where"
"""
UNITS = ['"event"', '"record"', '{ type = "user", inserts = 4, deletes = 0 }']


def problems(entry: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft7Validator(registry_schema(), format_checker=jsonschema.FormatChecker(["date"]))
    return [error.json_path for error in validator.iter_errors(entry)]


def paths(entry: dict[str, Any], at: str = "") -> Iterator[str]:
    for key, value in entry.items():
        yield f"{at}/{key}"
        if isinstance(value, dict) and key != "evidence_sources":
            yield from paths(value, f"{at}/{key}")


def schema_paths(node: dict[str, Any], at: str = "") -> Iterator[str]:
    for key, value in node.get("properties", {}).items():
        yield f"{at}/{key}"
        yield from schema_paths(value, f"{at}/{key}")


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(registry_schema())


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("method", ["tracking", "phdstream"])
def test_a_complete_entry_is_valid(tmp_path: Path, unit: str, method: str) -> None:
    users = {"input": 'user = "user"'} if "user" in unit else {}
    more = f'[stream]\nmethod = "{method}"\n{ABOUT_ALL}'
    config = load_config(write(tmp_path, table(user=["u"] * 600), unit=unit, more=more, epsilon=0.1, **users))
    entry = card(config)
    assert problems(entry) == []
    assert missing(config) == []
    assert MISSING not in json.dumps(entry)
    assert entry["url_slug"] == "where-people-are-in-x-statistics-x-2024"
    deployment = entry["deployment"]
    assert deployment["administrative"]["tier"] == 3
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.1}
    assert deployment["privacy_loss"]["privacy_unit"].split("-")[0].lower() in unit
    assert deployment["basic"]["publication_date"] == "2024-03-02"
    assert json.loads(json.dumps(entry)) == entry


def test_fields_are_in_the_registrys_order(tmp_path: Path) -> None:
    found = list(paths(card(load_config(write(tmp_path, more=ABOUT_ALL)))))
    assert found == [path for path in schema_paths(registry_schema()) if path in found]


@pytest.mark.parametrize("key", [key for key, (tier, _) in ABOUT.items() if tier])
def test_what_is_missing_is_marked_and_listed(tmp_path: Path, key: str) -> None:
    """And is all that can be wrong with the entry: a choice that nobody made is not guessed."""
    given = "\n".join(line for line in ABOUT_ALL.splitlines() if not line.startswith(f"{key} ="))
    config = load_config(write(tmp_path, more=given))
    entry = card(config)
    if key == "published":  # the schedule tells
        assert missing(config) == []
        return
    tier = ABOUT[key][0]
    assert [line.split(":")[0] for line in missing(config)] == [f"[about] {key} (tier {tier})"]
    assert entry["deployment"]["administrative"]["tier"] == tier - 1 or tier == 1
    assert (MISSING in json.dumps(entry)) == (key != "units")
    expected = ["$.deployment.basic.data_curators[0].data_curator_type"] if key == "organisation_type" else []
    assert problems(entry) == expected


def test_nothing_said_at_all(tmp_path: Path) -> None:
    config = load_config(write(tmp_path))
    entry = card(config)
    assert problems(entry) == ["$.deployment.basic.data_curators[0].data_curator_type"]
    assert (entry["url_slug"], entry["deployment"]["administrative"]["tier"]) == ("2024", 1)
    assert len(missing(config)) == sum(bool(tier) for tier, _ in ABOUT.values()) - 1


def test_the_same_whatever_the_data(tmp_path: Path) -> None:
    """Public: the data may not even be there, and may say anything."""
    cards = []
    for number, name in enumerate(("a", "b", "c")):
        (tmp_path / name).mkdir()
        config = load_config(write(tmp_path / name, table(per_day=7 + 100 * number, seed=number), more=ABOUT_ALL))
        if name == "c":
            (tmp_path / name / "events.parquet").unlink()
        else:
            run(config)
        cards.append(card(config, 6))
    assert cards[0] == cards[1] == cards[2]
    assert str(tmp_path) not in json.dumps(cards)


def test_a_simulation_has_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to register"):
        card(load_config(write(tmp_path, more=SIMULATED)))


def test_an_account_is_named(tmp_path: Path) -> None:
    account = '[account]\nfolder = "account"\npopulation = "residents of X"\nepsilon = 3.0\n'
    entry = card(load_config(write(tmp_path, more=account + ABOUT_ALL)))
    composition = entry["deployment"]["implementation"]["composition"]
    assert "(residents of X), it draws on one budget of ε = 3;" in composition
    assert problems(entry) == []


def test_the_command(tmp_path: Path) -> None:
    config = write(tmp_path, more=ABOUT_ALL.replace("units", "#"))
    assert "None is released yet" in phdstream("card", config).stdout
    run(load_config(config))
    done = phdstream("card", config)
    assert problems(json.loads(done.stdout)) == []
    assert "The last tick released is 6." in done.stdout
    assert done.stderr.startswith("Missing: [about] units (tier 3): about how many people")
    (tmp_path / "out" / "manifest.json").write_text("{")
    with pytest.raises(StateError, match=r"manifest\.json cannot be read"):
        last_tick(load_config(config))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("title", 3), ("title", " "), ("units", 0), ("units", True), ("units", "many"), ("authors", "A"),
        ("authors", []), ("authors", [3]), ("published", "soon"), ("published", 2024), ("sector", "Goverment"),
        ("organisation_type", "government"),
    ],
)  # fmt: skip
def test_what_about_may_not_say(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"\[about\] {key}"):
        read_about({key: value})


def test_an_unknown_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[about\] has an unknown key 'titel': did you mean 'title'"):
        load_config(write(tmp_path, more='[about]\ntitel = "x"'))
