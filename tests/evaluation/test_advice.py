"""The advice of a report: sentences that follow the numbers, and say what they cannot promise."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from phdstream.evaluation import read_experiment
from phdstream.evaluation.advice import advice
from phdstream.evaluation.summary import common_ticks, recommend
from tests.evaluation.experiments import OWN, small, write_events

METHODS = ["phdstream", "phdstream-block", "phdstream-4-ticks", "baseline-1"]


def table(errors: dict[str, float], t0: float = 0.2, ticks: tuple[int, ...] = (4, 8)) -> pa.Table:
    fixed = {"size": "small", "epsilon": 1.0, "t0": t0, "seed": 1}
    return pa.Table.from_pylist(
        [fixed | {"method": m, "tick": tick, "error": error} for m, error in errors.items() for tick in ticks]
    )


def said(errors: dict[str, float]) -> str:
    return "\n".join(advice(small(methods=METHODS), table(errors)))


def test_the_better_choice_is_advised() -> None:
    text = said({"phdstream": 0.2, "phdstream-block": 0.3, "phdstream-4-ticks": 0.1, "baseline-1": 0.05})
    assert "Best at ε = 1: PHDStream, ticks 4 times as long, from t0 = 0.2 on: error 0.100" in text
    assert "Baseline 1 (not private) 0.0500" in text
    assert "1 is the smallest one tried" in text
    assert "Counter: take the Simple counter. With the Block counter the error is 1.50 times" in text
    assert "Ticks: take ticks four times as long" in text
    assert "0.50 times" in text


def test_what_is_not_clear_is_not_advised() -> None:
    text = said({"phdstream": 0.2, "phdstream-block": 0.201, "baseline-1": 0.1})
    assert "Counter: no clear difference" in text
    assert "none that was tried" in text
    assert "one event" in text


def test_starts_are_compared_over_the_ticks_they_share() -> None:
    """An early start is measured when there is little data too: that must not count against it."""
    early = pa.concat_tables([table({"phdstream": 9.0}, 0.1, (1, 2)), table({"phdstream": 0.1}, 0.1, (6, 8))])
    both = pa.concat_tables([early, table({"phdstream": 0.2}, 0.5, (5, 8))])
    assert sorted(common_ticks(both)["tick"].to_pylist()) == [5, 6, 8, 8]
    assert recommend(both, {"phdstream"})[1.0][1] == 0.1
    starts = "\n".join(advice(small(methods=["phdstream"], start_after=[0.1, 0.5]), both))
    assert "0.1: 0.100, 0.5: 0.200" in starts


def test_real_data_gets_the_warning_and_few_events_are_noticed(tmp_path: Path) -> None:
    write_events(tmp_path / "events.parquet")
    text = "\n".join(advice(read_experiment(OWN, tmp_path), table({"phdstream": 0.2}, 3, (3, 8))))
    assert "not covered by ε" in text
    assert "30 a tick after the start (median), which is few" in text
    assert "not covered by ε" not in said({"phdstream": 0.2})


@pytest.mark.parametrize("methods", [["baseline-1"]])
def test_no_advice_without_a_private_method(methods: list[str]) -> None:
    assert advice(small(methods=methods), table({"baseline-1": 0.1})) == []
