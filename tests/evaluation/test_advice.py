"""The advice of a report: sentences that follow the numbers, and say what they cannot promise."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from phdstream.evaluation import read_experiment
from phdstream.evaluation.advice import advice
from phdstream.evaluation.metric_texts import METRIC_TEXTS, nothing_wins
from phdstream.evaluation.summary import common_ticks, means, recommend
from phdstream.evaluation.trials import METRICS
from tests.evaluation.experiments import OWN, small, write_events

METHODS = ["phdstream", "phdstream-block", "phdstream-4-ticks", "tracking", "tracking-4-ticks", "baseline-1"]
METHODS += ["nothing", "uniform"]


def table(errors: dict[str, float], t0: float = 0.2, ticks: tuple[int, ...] = (4, 8), size: str = "small") -> pa.Table:
    fixed = {"size": size, "epsilon": 1.0, "t0": t0, "seed": 1}
    return pa.Table.from_pylist(
        [
            fixed | {"method": name, "tick": tick} | dict.fromkeys(METRICS, error)
            for name, error in errors.items()
            for tick in ticks
        ]
    )


def said(errors: dict[str, float], **larger: dict[str, float]) -> str:
    tables = [table(errors), *(table(of, size=size) for size, of in larger.items())]
    return "\n".join(advice(small(methods=METHODS), pa.concat_tables(tables)))


def test_the_better_choice_is_advised() -> None:
    text = said({"phdstream": 0.2, "phdstream-block": 0.3, "phdstream-4-ticks": 0.1, "baseline-1": 0.05})
    assert (
        "Best at ε = 1, small queries: PHDStream, ticks 4 times as long, from t0 = 0.2 on: weighted error 0.100" in text
    )
    assert "publishing nothing 1, Baseline 1 (not private over time) 0.0500" in text
    assert "Counter: take the Simple counter. With the Block counter the error is 1.50 times" in text
    assert "Ticks: take ticks four times as long" in text
    assert "0.50 times" in text


def test_settings_are_those_of_the_recommended_method() -> None:
    """What was measured with the paper's method says nothing of tracking."""
    text = said({"phdstream": 0.4, "phdstream-block": 0.2, "tracking": 0.1, "tracking-4-ticks": 0.15})
    assert "Tracking, from t0" in text
    assert "Ticks: take ticks as they are. With ticks four times as long the error is 1.50 times" in text
    assert "Counter" not in text


def test_what_is_not_clear_is_not_advised() -> None:
    text = said({"phdstream": 0.2, "phdstream-block": 0.201, "baseline-1": 0.1})
    assert "Counter: no clear difference" in text
    assert "one event" in text


def test_the_smallest_usable_epsilon_is_said_for_each_size() -> None:
    text = said({"tracking": 0.7}, large={"tracking": 0.3})
    assert "small none that was tried, medium none that was tried, large ε = 1" in text


def test_a_map_that_is_not_usable_is_called_so() -> None:
    text = said({"tracking": 0.8, "uniform": 1.4}, large={"tracking": 0.6})
    assert "No ε that was tried gives a usable map of this data" in text
    assert "worse than publishing nothing" not in text
    worse = said({"tracking": 1.8, "uniform": 1.4}, large={"tracking": 1.1})
    assert "everything is worse than publishing nothing" in worse
    assert "So publishing nothing or the total alone would be better" in worse


def test_the_floors_are_never_recommended() -> None:
    assert "Best at ε = 1, small queries: Tracking" in said({"tracking": 1.2, "nothing": 1.0, "uniform": 0.9})


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


def test_where_nothing_wins_by_the_papers_metric_it_is_said() -> None:
    experiment = small(methods=METHODS)
    few = {"phdstream": 0.3, "baseline-1": 0.2, "nothing": 0.1, "uniform": 0.5}
    text = nothing_wins(experiment, means(table(few), "error"))
    assert "even one that spends all of ε anew" in text
    assert "small queries, 2 methods" in text
    assert nothing_wins(experiment, means(table(few | {"nothing": 0.4}), "error")) == ""


def test_every_metric_is_in_the_report() -> None:
    assert {metric.column for metric in METRIC_TEXTS} == set(METRICS)


def test_early_releases_that_are_worse_than_nothing_are_named() -> None:
    later = pa.concat_tables([table({"tracking": 1.5}, ticks=(4, 8)), table({"tracking": 0.2}, ticks=(12, 16))])
    text = "\n".join(advice(small(methods=["tracking"]), later))
    assert "worse than publishing nothing: ε = 1 up to tick 8, better from 12 on" in text
    assert "Early releases" not in said({"tracking": 0.2})
    assert "Early releases" not in said({"tracking": 1.2})
