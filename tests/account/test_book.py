"""The rule of an account: sums are exact, kinds of units do not mix, every line follows from the one before."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path

import pytest

from phdstream.account.book import Book, decimal
from phdstream.errors import BudgetError, StateError
from tests.account.accounts import EVENT, book, draw, files


class TestTheSum:
    def test_ten_tenths_are_one_and_not_a_bit_more(self, tmp_path: Path) -> None:
        """In doubles ten tenths are less than 1, and three are more than 0.3: neither decides."""
        for number in range(10):
            draw(tmp_path, number, "0.1")
        assert book(tmp_path).left == 0
        with pytest.raises(BudgetError, match=r"has 0 left of 1\. The stream was not started"):
            draw(tmp_path, 11, "1e-09")
        for number in range(3):
            draw(tmp_path / "three", number, "0.1", budget="0.3")
        assert book(tmp_path / "three").drawn == Fraction(3, 10)

    def test_the_smallest_excess_is_refused(self, tmp_path: Path) -> None:
        draw(tmp_path, 1, "0.9")
        before = files(tmp_path)
        with pytest.raises(BudgetError, match=r"0\.1 left"):
            draw(tmp_path, 2, "0.10000000000000002")
        assert files(tmp_path) == before

    def test_a_first_stream_that_asks_for_too_much_opens_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(BudgetError, match="has 1 left of 1"):
            draw(tmp_path, 1, "1.5")
        assert files(tmp_path) == {}

    def test_decimals(self) -> None:
        assert decimal(Fraction("1e-9") + 12) == "12.000000001"
        assert decimal(Fraction(0)) == "0"
        with pytest.raises(ValueError, match="no end"):
            decimal(Fraction(1, 3))


class TestUnits:
    def test_another_kind_is_refused(self, tmp_path: Path) -> None:
        draw(tmp_path, 1, "0.1", {"type": "user", "inserts": 4, "deletes": 0})
        for unit in (EVENT, {"type": "record"}):
            with pytest.raises(BudgetError, match="their ε do not add up"):
                draw(tmp_path, 2, "0.1", unit)
        assert len(book(tmp_path).charges) == 1

    def test_users_with_other_bounds_add_up(self, tmp_path: Path) -> None:
        draw(tmp_path, 1, "0.1", {"type": "user", "inserts": 4, "deletes": 0})
        draw(tmp_path, 2, "0.2", {"type": "user", "inserts": 1, "deletes": 1})
        assert book(tmp_path).drawn == Fraction("0.3")


class TestTheChain:
    def lines(self, tmp_path: Path) -> list[bytes]:
        for number in range(1, 4):
            draw(tmp_path, number, "0.25")
        return (tmp_path / "log").read_bytes().splitlines()

    def test_a_replay_is_the_ledger(self, tmp_path: Path) -> None:
        replayed = Book.replay(self.lines(tmp_path))
        assert replayed.ledger.encode() == (tmp_path / "ledger").read_bytes()
        assert (replayed.drawn, len(replayed.charges)) == (Fraction(3, 4), 3)

    def test_every_change_of_every_line_is_seen(self, tmp_path: Path) -> None:
        lines = self.lines(tmp_path)
        for number, line in enumerate(lines[:-1]):
            for place in range(len(line)):
                changed = [*lines]
                changed[number] = line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]
                with pytest.raises(StateError, match="line"):
                    Book.replay(changed)

    @pytest.mark.parametrize("order", [[0, 2, 3], [0, 2, 1, 3], [1, 2, 3], [0, 1, 1, 2], [0, 0, 1]])
    def test_lines_taken_out_moved_or_doubled(self, tmp_path: Path, order: list[int]) -> None:
        lines = self.lines(tmp_path)
        with pytest.raises(StateError, match="line"):
            Book.replay([lines[number] for number in order])

    def test_a_well_chained_log_may_still_break_the_rule(self, tmp_path: Path) -> None:
        whole = Book.replay(self.lines(tmp_path))
        next_one = dataclasses.replace(whole.charges[-1], sequence=4, previous=whole.digest)
        for bad in (
            next_one,  # the same stream again
            dataclasses.replace(next_one, stream="f" * 32, epsilon="0.3"),
            dataclasses.replace(next_one, stream="f" * 32, unit={"type": "record"}),
        ):
            lines = [whole.opening.encode(), *(one.encode() for one in (*whole.charges, bad))]
            with pytest.raises(StateError, match="line 5 does not follow"):
                Book.replay(lines)
