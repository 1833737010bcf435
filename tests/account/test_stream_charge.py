"""A stream's charge: before its first commit, once for ever, whatever crashes."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import phdstream as phd
from phdstream.account import charge
from phdstream.account.settings import AccountSettings
from phdstream.errors import BudgetError, StateError
from phdstream.streams.durable.locked_folder import LockedFolder
from tests.account.accounts import book, files, settings

BOX = phd.Box([(0, 1), (0, 1)], depth=6)
POINTS = [(0.5, 0.5)] * 10


def opened(folder: Path, epsilon: float = 0.6, unit: Any = None, **more: Any) -> Any:
    return phd.durable(folder, phd.TrackingStream(BOX, epsilon=epsilon, unit=unit or phd.Event(), **more))


def account(tmp_path: Path) -> AccountSettings:
    return settings(tmp_path / "account")


def test_a_stream_is_charged_for_its_life(tmp_path: Path) -> None:
    for _ in range(3):
        with opened(tmp_path / "s") as stream:
            made = charge(account(tmp_path), stream)
            assert made is not None
            assert (made.stream, made.epsilon, made.unit) == (stream.id, "0.6", {"type": "event"})
            stream.update(POINTS)
    assert stream.tick == 3
    assert book(tmp_path / "account").drawn == Fraction("0.6")


def test_one_that_would_exceed_does_not_start(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as stream:
        charge(account(tmp_path), stream)
    with opened(tmp_path / "b") as stream, pytest.raises(BudgetError, match=r"ε is 0\.6, .* has 0\.4 left of 1"):
        charge(account(tmp_path), stream)
    assert not (tmp_path / "b").exists()
    with opened(tmp_path / "b", epsilon=0.4) as stream:
        charge(account(tmp_path), stream)
    assert book(tmp_path / "account").left == 0


def test_a_service_that_dies_again_and_again_before_it_begins_is_charged_once(tmp_path: Path) -> None:
    names = set()
    for _ in range(20):
        with opened(tmp_path / "s") as stream:
            charge(account(tmp_path), stream)
            names.add(stream.id)
    with opened(tmp_path / "s") as stream:
        charge(account(tmp_path), stream)
        stream.begin()
        names.add(stream.id)
    assert len(names) == len(book(tmp_path / "account").charges) == 1


def test_a_charge_is_never_made_under_an_id_that_could_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with opened(tmp_path / "s") as stream:
        monkeypatch.setattr(LockedFolder, "replace", full)
        with pytest.raises(StateError, match="committed cannot be written"):
            charge(account(tmp_path), stream)
    assert files(tmp_path / "account") == {}


def test_another_promise_under_a_claimed_id(tmp_path: Path) -> None:
    with opened(tmp_path / "s", epsilon=0.5) as stream:
        charge(account(tmp_path), stream)
    for epsilon, unit in ((0.9, phd.Event()), (0.5, phd.Record())):
        with opened(tmp_path / "s", epsilon, unit) as stream, pytest.raises(BudgetError, match=r"charged ε = 0\.5"):
            charge(account(tmp_path), stream)


def test_seeded_streams_draw_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "s", noise=phd.Simulation(1)) as stream:
        assert charge(account(tmp_path), stream) is None
        assert "account" not in stream.notes
    assert not (tmp_path / "account").exists()


def test_without_an_account_nothing_happens(tmp_path: Path) -> None:
    with opened(tmp_path / "s") as stream:
        assert charge(None, stream) is None
    assert list(tmp_path.iterdir()) == []


class TestStreamsThatHaveBegun:
    def begun(self, tmp_path: Path, with_account: bool = True) -> None:
        with opened(tmp_path / "s") as stream:
            charge(account(tmp_path) if with_account else None, stream)
            stream.update(POINTS)

    def test_one_that_began_without_an_account_is_charged(self, tmp_path: Path) -> None:
        self.begun(tmp_path, with_account=False)
        self.begun(tmp_path)
        assert book(tmp_path / "account").drawn == Fraction("0.6")

    def test_and_stops_if_there_is_no_room(self, tmp_path: Path) -> None:
        self.begun(tmp_path, with_account=False)
        with opened(tmp_path / "other") as stream:
            charge(account(tmp_path), stream)
        with pytest.raises(BudgetError):
            self.begun(tmp_path)

    @pytest.mark.parametrize("then", ["gone", "older", "another"])
    def test_an_account_that_forgot(self, tmp_path: Path, then: str) -> None:
        """Log and ledger were taken away or put back together: the chain is whole, only streams can tell."""
        with opened(tmp_path / "first", epsilon=0.1) as stream:
            charge(account(tmp_path), stream)
        shutil.copytree(tmp_path / "account", tmp_path / "older")
        self.begun(tmp_path)
        shutil.rmtree(tmp_path / "account")
        if then == "older":
            (tmp_path / "older").rename(tmp_path / "account")
        if then == "another":
            with opened(tmp_path / "third", epsilon=0.2) as stream:
                charge(account(tmp_path), stream)
        with pytest.raises(StateError, match="does not know of it"):
            self.begun(tmp_path)
