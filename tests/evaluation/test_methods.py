"""The methods that every evaluation can name: all make releases, and those that are not private say so."""

from __future__ import annotations

import numpy as np
import pytest

import phdstream as phd
from phdstream.baselines.releaser import encoded
from phdstream.evaluation import MethodSpec, read_experiment, standard_methods
from phdstream.evaluation.methods import LongerTicks

SQUARE = phd.Box([(0, 1), (0, 1)])


def crowd(number: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((number, 2)) * 0.2


@pytest.mark.parametrize("spec", standard_methods().values(), ids=standard_methods())
def test_every_method_follows_the_data(spec: MethodSpec) -> None:
    method = spec.make(SQUARE, 4.0, phd.Simulation(1))
    first = method.update(crowd(500, 1), np.zeros((0, 2)))
    assert len(first.sample()) == (0 if spec.label.startswith("Nothing") else pytest.approx(500, abs=50))
    assert spec.private == ("for comparison only" not in first.privacy)
    assert spec.private == ("not private" not in spec.label)


def test_every_line_can_be_told_from_the_others_also_in_grey() -> None:
    styles = {name: spec.style for name, spec in standard_methods().items() if "insert-only" not in name}
    assert len({style[1:] for style in styles.values() if style}) >= len(styles) - 1  # tracking's and PHDStream's


def test_the_floors_are_compared_unless_told_otherwise() -> None:
    compared = read_experiment({"data": {"circles": "moving"}}).methods
    assert [name for name in compared if standard_methods()[name].floor] == ["nothing", "uniform"]


@pytest.mark.parametrize("spec", standard_methods().values(), ids=standard_methods())
def test_events_may_come_as_codes(spec: MethodSpec) -> None:
    """Every method releases the same, to the bit, whether it is given points or what the domain makes of them."""
    by_points, by_codes = (spec.make(SQUARE, 1.0, phd.Simulation(1)) for _ in range(2))
    for t in range(5):
        come, gone = (
            crowd(300, t + 1),
            crowd(300, t)[: 100 * (t > 0) * ("insert-only" not in spec.label)],
        )
        first = by_points.update(come, gone)
        second = by_codes.update(*(encoded(SQUARE.encode(points)[0]) for points in (come, gone)))
    assert (first.sample() == second.sample()).all()


def test_longer_ticks_release_every_so_often_and_lose_nothing() -> None:
    inner = phd.PHDStream(SQUARE, 100.0, phd.Event(), noise=phd.Simulation(1))
    slow = LongerTicks(inner, ticks=3)
    none = np.zeros((0, 2))
    sizes = [int(slow.update(crowd(100, seed), none).points.sum()) for seed in range(7)]
    assert sizes == pytest.approx([100, 100, 100, 400, 400, 400, 700], abs=10)
    assert inner.tick == 3
