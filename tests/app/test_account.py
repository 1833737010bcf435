"""`[account]` in a configuration: `run` charges it first, `phdstream account` shows it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.app.serve import open_stream
from phdstream.errors import BudgetError, ConfigError
from tests.account.accounts import book, files
from tests.app.commands import phdstream
from tests.app.test_run import SIMULATED, released, write

ACCOUNT = '[account]\nfolder = "../account"\npopulation = "residents of X"\nepsilon = 1.5\n'


def configured(folder: Path, epsilon: float = 1.0, more: str = ACCOUNT) -> Path:
    folder.mkdir(exist_ok=True)
    return write(folder, epsilon=epsilon, more=more)


def test_runs_draw_on_it(tmp_path: Path) -> None:
    for _ in range(2):
        run(load_config(configured(tmp_path / "a")))
    assert [one.epsilon for one in book(tmp_path / "account").charges] == ["1"]
    with pytest.raises(BudgetError, match=r"ε is 1, but the account of 'residents of X' has 0\.5 left of 1\.5"):
        run(load_config(configured(tmp_path / "b")))
    assert not (tmp_path / "b" / "private").exists()
    assert released(tmp_path / "b") == []
    run(load_config(configured(tmp_path / "b", epsilon=0.5)))
    assert book(tmp_path / "account").drawn == Fraction(3, 2)


def test_services_draw_on_it(tmp_path: Path) -> None:
    """And what a run was charged for, a service goes on with."""
    run(load_config(configured(tmp_path / "a")))
    for name, epsilon in (("a", 1.0), ("b", 0.5), ("b", 0.5)):
        for opened in open_stream(load_config(configured(tmp_path / name, epsilon))):
            opened.close()
    with pytest.raises(BudgetError, match="has 0 left"):
        open_stream(load_config(configured(tmp_path / "c")))
    assert [one.epsilon for one in book(tmp_path / "account").charges] == ["1", "0.5"]


def test_a_simulation_does_not(tmp_path: Path) -> None:
    run(load_config(configured(tmp_path / "a", more=ACCOUNT + SIMULATED)))
    assert not (tmp_path / "account").exists()


def test_it_lies_apart(tmp_path: Path) -> None:
    for folder in ("out", "private/x", "."):
        with pytest.raises(ConfigError, match=r"\[account\] folder must lie outside \[output\]"):
            load_config(configured(tmp_path / "a", more=ACCOUNT.replace("../account", folder)))


def test_the_command(tmp_path: Path) -> None:
    config = configured(tmp_path / "a")
    assert phdstream("account", config).stdout == "No stream has drawn on this account yet.\n"
    run(load_config(config))
    charged = book(tmp_path / "account").charges[0]
    for asked in (config, tmp_path / "account"):
        said = phdstream("account", asked).stdout
        for part in ("'residents of X'", "Left: 0.5.", charged.stream, book(tmp_path / "account").digest):
            assert part in said
    log = tmp_path / "account" / "log"
    log.write_bytes(log.read_bytes().replace(b'"epsilon":"1"', b'"epsilon":"0.1"'))
    before = files(tmp_path / "account")
    done = phdstream("account", config)
    assert done.returncode == 1
    assert "was changed by something other than phdstream" in done.stderr
    assert files(tmp_path / "account") == before


def test_the_command_without_an_account(tmp_path: Path) -> None:
    assert "has no section [account]" in phdstream("account", configured(tmp_path / "a", more="")).stderr
