"""A release is whole or is not made: its invariants on thousands of small streams, and what happens if the model fails.

The random streams must hold *without* the fallback: it is there for what nobody thought of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains import Domain
from phdstream.domains.binary_tree import BinaryTree
from phdstream.domains.network import Network
from phdstream.errors import StateError
from phdstream.release.estimate import Estimate
from phdstream.release.soundness import Fallback, faults, total_alone
from phdstream.streams.paper import method as paper_module
from phdstream.streams.stream import Stream
from phdstream.streams.tracking.model import model as model_module
from phdstream.streams.tracking.model import start as start_module
from phdstream.streams.tracking.model.regularize import _tilted
from phdstream.streams.tracking.model.split_tree import SplitTree
from tests.noises import RecordingNoise
from tests.thorough import cases

SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)
METHODS = (phd.TrackingStream, phd.PHDStream)
CASES_A_DOMAIN = cases(15, 300)


def star(seed: int) -> Any:
    """Return a random polygon around the middle: spiky, often a sliver, sometimes with a hole."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, int(rng.integers(3, 12))))
    far = rng.uniform(0.02, 1, angle.size) ** 2
    shape = shapely.make_valid(shapely.Polygon(np.c_[far * np.cos(angle), far * np.sin(angle) * rng.choice([1, 1e-3])]))
    if rng.random() < 0.4:
        shape = shape.difference(shapely.Point(rng.uniform(-0.2, 0.2, 2)).buffer(rng.uniform(0.01, 0.2)))
    return shapely.MultiPolygon([part for part in shapely.get_parts(shape) if part.geom_type == "Polygon"])


def region(seed: int, **options: Any) -> Domain:
    shapes = (star(s) for s in range(seed, seed + 100))
    return phd.Region(next(shape for shape in shapes if shape.area > 1e-9), **options)


def streets(seed: int) -> Domain:
    rng = np.random.default_rng(seed)
    return Network([shapely.LineString(rng.uniform(0, 100, (3, 2))) for _ in range(12)], snap=8, depth=9)


def towns(seed: int) -> Domain:
    rng = np.random.default_rng(seed)
    return phd.Hierarchy([f"{a}/{b}/{i}" for a in "ABC" for b in "xyzvw" for i in range(int(rng.integers(1, 9)))])


DOMAINS: dict[str, Callable[[int], Domain]] = {
    "region": lambda seed: region(seed, depth=10),
    "region, deep": lambda seed: region(seed, depth=22),
    "region by quarters": lambda seed: region(seed, depth=5, fanout=4),
    "region by eights": lambda seed: region(seed, depth=3, fanout=8),
    "region in degrees": lambda seed: region(seed, depth=9, crs="EPSG:4326"),
    "network": streets,
    "hierarchy": towns,
    "globe": lambda _: phd.Globe(depth=8),
    "line": lambda _: phd.Box([(0, 1)], depth=9),
    "box": lambda _: phd.Box([(0, 1), (0, 1)], depth=9),
    "box by quarters": lambda _: phd.Box([(0, 1), (0, 1)], depth=5, fanout=4),
    "box by eights": lambda _: phd.Box([(0, 1)] * 3, depth=3, fanout=8),
    "box by sixteens": lambda _: phd.Box([(0, 1), (0, 1)], depth=3, fanout=16),
    "cube": lambda _: phd.Cube(8),
}


@cache
def domain_of(name: str, seed: int) -> Domain:
    return DOMAINS[name](seed)


def events(domain: Domain, rng: np.random.Generator) -> Any:
    """Return some events: half spread over the domain, half in one place."""
    n = int(rng.choice([0, 3, 60, 400]))
    spread = domain.sample(np.array([1]), np.array([n]), key=int(rng.integers(1 << 40)))
    return np.concatenate([spread[: n // 2], np.repeat(spread[:1], n // 2, axis=0)])


def some_stream(domain: Domain, method: Any, rng: np.random.Generator) -> Stream:
    kinds: list[Any] = [{}, {"window": 1}, {"window": 3}, {"insert_only": True}]
    options: dict[str, Any] = rng.choice(kinds)
    if rng.random() < 0.3:
        options = options | {"start_after": int(rng.integers(1, 4))}
    if rng.random() < 0.2:
        options = options | {"max_nodes": domain.fanout + 1 + int(rng.integers(200))}
    if method is phd.PHDStream:
        options = options | {"counter": str(rng.choice(["simple", "block", "binary", "hybrid"]))}
    noise = phd.Simulation(int(rng.integers(1 << 40)))
    epsilon = float(10 ** rng.uniform(-2, 1.7))
    return method(domain, epsilon=epsilon, unit=phd.Event(), noise=noise, **options)


def whole(release: phd.Release) -> bool:
    return release.held or faults(release.domain, release.estimate) == []


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DOMAINS)
def test_every_release_is_whole_without_the_fallback(name: str, method: Any) -> None:
    for seed in range(CASES_A_DOMAIN):
        rng = np.random.default_rng([seed, 5])
        domain = domain_of(name, seed % 10)
        stream = some_stream(domain, method, rng)
        before: np.ndarray | None = None
        for _ in range(int(rng.integers(1, 6))):
            come = events(domain, rng)
            gone = before if stream.deletes and before is not None and rng.random() < 0.7 else None
            release, before = stream.update(come, deletes=gone), come
            assert whole(release), (seed, faults(domain, release.estimate))
            assert "fallback" not in release.metadata, seed


@pytest.mark.slow
def test_a_state_s_outline_gives_no_negative_counts() -> None:
    """A deep tree on New York State published counts down to -1.4 and -1 points, or failed."""
    from phdstream.domains.outlines import new_york_state

    domain = phd.Region(new_york_state(), crs="EPSG:4326", depth=26)
    stream = phd.TrackingStream(domain, 1.0, phd.Event(), insert_only=True, noise=phd.Simulation(1))
    for day in range(3):
        release = stream.update(np.random.default_rng(day).normal((-73.98, 40.74), 0.05, (15_000, 2)))
        assert whole(release)
        assert "fallback" not in release.metadata
        assert np.abs(vars(stream)["_method"]._model.view.contrast).max() <= 1


def test_slopes_multiply_the_odds_of_the_measure() -> None:
    prior, slope = np.meshgrid(np.linspace(-1, 1, 41), np.linspace(-0.9, 0.9, 37))
    tilted = _tilted(prior, slope)
    assert np.abs(tilted).max() <= 1
    inner = np.abs(prior) < 1
    odds = [(1 + lean[inner]) / (1 - lean[inner]) for lean in (tilted, prior, slope)]
    np.testing.assert_allclose(odds[0], odds[1] * odds[2])
    np.testing.assert_array_equal(tilted[~inner], prior[~inner])
    np.testing.assert_array_equal(_tilted(np.zeros(37), slope[:, 0]), slope[:, 0])


# --- the invariants themselves ---


def released(domain: Domain = SQUARE) -> Estimate:
    stream = phd.TrackingStream(domain, 5.0, phd.Event(), noise=phd.Simulation(2))
    return stream.update(domain.sample(np.array([1]), np.array([600]), key=3)).estimate


def changed(estimate: Estimate, column: str, at: int, value: Any) -> Estimate:
    values = getattr(estimate, column).copy()
    values[at] = value
    return replace(estimate, **{column: values})


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("count", np.nan, "not finite"),
        ("unbiased", np.inf, "not finite"),
        ("variance", np.nan, "not finite"),
        ("count", -1e-12, "count is negative"),
        ("variance", -1.0, "variance is negative"),
        ("share_variance", -1.0, "variance is negative"),
        ("points", -1, "points is negative"),
        ("count", 1e6, "counts do not add up"),
        ("points", 10**6, "points do not add up"),
        ("node", 2, "not in order"),
        ("leaf", False, "do not tile"),
    ],
)
def test_a_planted_fault_is_named(column: str, value: Any, words: str) -> None:
    estimate = released()
    assert faults(SQUARE, estimate) == []
    assert words in " ".join(faults(SQUARE, changed(estimate, column, -1, value)))


@pytest.mark.parametrize("name", ["box", "box by quarters", "region", "region by quarters", "network", "globe"])
def test_a_missing_or_foreign_cell_is_noticed(name: str) -> None:
    domain = domain_of(name, 1)
    estimate = released(domain)
    assert faults(domain, estimate) == []
    light = int(np.flatnonzero(estimate.leaf & (estimate.count <= estimate.count[estimate.leaf].min() + 1e-9))[-1])
    kept = np.arange(estimate.node.size) != light
    without = Estimate(**{column: values[kept] for column, values in vars(estimate).items()})
    assert faults(domain, without)
    assert faults(domain, changed(estimate, "leaf", 0, True))
    assert faults(domain, replace(estimate, node=estimate.node[:-1]))


def test_points_in_a_place_without_measure_are_noticed() -> None:
    triangle = phd.Region(shapely.Polygon([(0, 0), (1, 0), (0, 1)]), depth=4)
    whole_tree = released(phd.Box([(0, 1), (0, 1)], depth=4))
    assert any("without measure" in fault for fault in faults(triangle, whole_tree))


def test_a_total_alone_is_a_whole_release() -> None:
    for total in (-3.0, 0.0, 7.4):
        assert faults(SQUARE, total_alone(total, 2.0, key=5)) == []


# --- faults planted in the model ---


def spoilt(kind: str, value: Any) -> Any:
    """Return what a step of the model gave, spoilt."""
    if kind == "raises":
        raise ZeroDivisionError("planted")
    if isinstance(value, tuple):
        return tuple(spoilt(kind, part) for part in value)
    if isinstance(value, Estimate):
        return changed(value, "count", 0, {"NaN": np.nan, "negative": -5.0, "off": value.count[0] + 9}[kind])
    bad = np.full(value.contrast.size, {"NaN": np.nan, "negative": -1.4, "off": 1.2}[kind])
    return SplitTree(value.node, bad, value.variance)


KINDS = ("raises", "NaN", "negative", "off")
TRACKING_STEPS = [
    (model_module, "kalman_follow"),
    (model_module, "regularize"),
    (model_module, "to_estimate"),
    (start_module, "kalman_update"),
]
ALL_STEPS = [(phd.TrackingStream, *step) for step in TRACKING_STEPS] + [(phd.PHDStream, paper_module, "estimate")]


def run(method: Any, domain: Domain, ticks: int = 12, **options: Any) -> tuple[list[phd.Release], Any, Stream]:
    noise = RecordingNoise()
    stream = method(domain, epsilon=1.0, unit=phd.Event(), noise=noise, **options)
    releases = []
    for tick in range(ticks):
        come = domain.sample(np.array([1]), np.array([500 if tick == 0 else 120]), key=tick)
        releases.append(stream.update(come, deletes=come[:30] if stream.deletes and tick else None))
    return releases, noise, stream


@cache
def sound_run(method: Any, name: str) -> tuple[list[phd.Release], Any, Stream]:
    return run(method, domain_of(name, 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["box", "region", "hierarchy"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("method", "module", "step"), ALL_STEPS)
def test_a_fault_in_the_model_never_stops_a_stream(
    monkeypatch: pytest.MonkeyPatch, name: str, kind: str, method: Any, module: Any, step: str
) -> None:
    """Always faulty: every release is whole all the same, budgets are spent as planned, and the total is right."""
    domain, original = domain_of(name, 2), getattr(module, step)
    expected, noise, _ = sound_run(method, name)
    monkeypatch.setattr(module, step, lambda *args: spoilt(kind, original(*args)))
    releases, faulty, _ = run(method, domain)
    assert all(whole(release) for release in releases)
    assert any(release.metadata.get("fallback") is True for release in releases)
    assert not any("fallback" in release.metadata for release in expected)
    assert [release.total for release in releases] == pytest.approx([release.total for release in expected], abs=1)
    if step in ("to_estimate", "estimate"):  # what is published is asked nothing of: the very same noise
        assert [(d.scale, d.at.tolist()) for d in faulty.draws] == [(d.scale, d.at.tolist()) for d in noise.draws]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("method", "module", "step"), ALL_STEPS)
def test_after_a_fault_in_one_tick_the_stream_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, method: Any, module: Any, step: str
) -> None:
    domain, original = domain_of("region", 2), getattr(module, step)
    stream = method(domain, epsilon=1.0, unit=phd.Event(), noise=phd.Simulation(4))
    come = domain.sample(np.array([1]), np.array([400]), key=1)
    with monkeypatch.context() as patch:
        patch.setattr(module, step, lambda *args: spoilt(kind, original(*args)))
        faulty = stream.update(come)
        assert whole(faulty)
        stream.save(tmp_path / "state")
    copy = method.load(tmp_path / "state")
    assert copy.release.metadata == faulty.metadata
    for _ in range(3):
        releases = [one.update(come) for one in (stream, copy)]
        assert all(whole(release) for release in releases)
        assert all(faults(domain, release.estimate) == [] for release in releases)
    assert "fallback" not in releases[1].metadata
    np.testing.assert_array_equal(releases[1].sample().shape[1], 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", ["weighted_least_squares", "masses", "choose_zones", "expected_in_block", "learning_from"], ids=str
)
def test_any_other_step_of_the_model_may_fail_too(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("planted")

    monkeypatch.setattr(model_module, step, fails)
    releases, _, _ = run(phd.TrackingStream, domain_of("region", 2), ticks=25, max_nodes=40)
    assert all(whole(release) for release in releases)
    assert any("fallback" in release.metadata for release in releases)


def test_the_plain_splits_come_before_the_total_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, _, _ = run(phd.TrackingStream, SQUARE, ticks=1)
    monkeypatch.setattr(model_module, "regularize", lambda *_: 1 / 0)
    releases, _, stream = run(phd.TrackingStream, SQUARE, ticks=1)
    assert releases[0].leaves.size > 10
    model: Any = stream._method
    assert model._model.view is model._model.splits
    monkeypatch.setattr(model_module, "to_estimate", lambda *_: 1 / 0)
    releases, _, _ = run(phd.TrackingStream, SQUARE, ticks=1)
    assert releases[0].leaves.tolist() == [1]
    assert releases[0].total == pytest.approx(plain[0].total)
    assert releases[0].estimate.variance[0] > 0
    assert releases[0].sample().shape == (int(releases[0].points[0]), 2)


def test_mended_splits_are_sound_and_keep_out_of_places_without_measure() -> None:
    tree = BinaryTree(domain_of("region", 3))
    nodes = np.arange(1, 64)
    broken = SplitTree(nodes, np.resize([np.nan, 1.7, -3.0, 0.2, np.inf], 63), np.resize([0.1, np.nan, -2.0], 63))
    mended = broken.mended(tree)
    assert not broken.sound()
    assert mended.sound()
    first = np.concatenate([tree.first_share(nodes[(1 << b) - 1 : (2 << b) - 1], b) for b in range(6)])
    np.testing.assert_array_equal(mended.contrast[first == 1], 1)
    np.testing.assert_array_equal(mended.contrast[first == 0], -1)
    np.testing.assert_array_equal(mended.contrast[0], 2 * first[0] - 1)


def test_running_out_of_memory_is_not_hidden() -> None:
    def fails() -> int:
        raise MemoryError

    with pytest.raises(MemoryError):
        Fallback().first_sound([fails, lambda: 1], lambda _: True)


def test_if_nothing_can_be_published_the_stream_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phdstream.release.soundness.faults", lambda *_: ["planted"])
    stream = phd.PHDStream(SQUARE, 1.0, phd.Event(), noise=phd.Simulation(1))
    with pytest.raises(StateError, match="planted"):
        stream.update([(0.5, 0.5)])
