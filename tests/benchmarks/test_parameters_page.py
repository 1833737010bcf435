"""docs/parameters.md is made from the parameters; the ablations name parameters that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.invented import INVENTED

from benchmarks import ablation, parameters_page
from phdstream.streams.tracking import TrackingParameters

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_that_of_the_parameters() -> None:
    assert (DOCS / "parameters.md").read_text(encoding="utf-8") == parameters_page.page()


@pytest.mark.parametrize("name", ablation.ABLATIONS)
def test_an_ablation_switches_something_off(name: str) -> None:
    assert TrackingParameters().changed(ablation.ABLATIONS[name]) != TrackingParameters()


@pytest.mark.parametrize("name", INVENTED)
def test_invented_streams_come_and_go_in_the_square(name: str) -> None:
    ticks = INVENTED[name](1)
    assert all(tick.inserts.min() >= 0 and tick.inserts.max() <= 1 for tick in ticks)
    assert sum(len(tick.deletes) for tick in ticks) < sum(len(tick.inserts) for tick in ticks)


def test_a_run_measures_three_sizes_of_queries() -> None:
    assert all(0 < error < 5 for error in ablation.run("few points", 2.0, 1, {"smoothing.on": False}))
