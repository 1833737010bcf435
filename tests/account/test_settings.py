"""The section ``[account]``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from phdstream.account.settings import read_account
from phdstream.errors import ConfigError

GOOD = {"folder": "account", "population": "residents of X", "epsilon": 3.0}


def test_what_it_says(tmp_path: Path) -> None:
    found = read_account(GOOD, tmp_path, {"[output] state": tmp_path / "state"})
    assert (found.folder, found.population, found.epsilon) == (tmp_path / "account", "residents of X", "3")
    assert read_account(GOOD | {"epsilon": 0.1}, tmp_path, {}).epsilon == "0.1"
    assert read_account(GOOD | {"epsilon": 3}, tmp_path, {}).epsilon == "3"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("folder", ""), ("folder", 3), ("folder", "a\0b"), ("population", ""), ("population", " "), ("population", 3),
        ("population", "x" * 201), ("population", "two\nlines"), ("epsilon", 0), ("epsilon", -1.0), ("epsilon", True),
        ("epsilon", float("nan")), ("epsilon", float("inf")), ("epsilon", "3"), ("epsilon", 10**400),
    ],
)  # fmt: skip
def test_what_it_may_not_say(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"\[account\] {key} must"):
        read_account(GOOD | {key: value}, tmp_path, {})


@pytest.mark.parametrize("key", sorted(GOOD))
def test_all_of_it_is_needed(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=f"needs '{key}'"):
        read_account({name: value for name, value in GOOD.items() if name != key}, tmp_path, {})


@pytest.mark.parametrize("folder", ["state", "state/account", "."])
def test_it_lies_apart(tmp_path: Path, folder: str) -> None:
    with pytest.raises(ConfigError, match=r"outside \[output\] state"):
        read_account(GOOD | {"folder": folder}, tmp_path, {"[output] state": tmp_path / "state"})
