"""Whatever is passed where a number, a unit or a shape belongs: an answer, or an error of phdstream's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream import counters
from phdstream.errors import InputError, PhdstreamError
from phdstream.privacy import Budget
from tests.noises import KnownNoise

BOX = phd.Box([(0, 1), (0, 1)], depth=6)
LINES = [shapely.LineString([(0, 0), (1, 1)])]
ODD: dict[str, Any] = {
    "a huge number": 10**400,
    "one that Python does not write": 10**5000,
    "a negative one": -(10**400),
    "complex": 1j,
    "text": "x",
    "nothing": None,
    "a list": [1],
    "ragged": [[1, 2], [3]],
    "NaN": float("nan"),
    "an array": np.array([1.0]),
    "a NumPy number": np.float32(1.5),
    "yes": True,
    "an object": object(),
}


def stream(method: Any = phd.TrackingStream, **options: Any) -> Any:
    return method(**({"domain": BOX, "epsilon": 1.0, "unit": phd.Event(), "noise": KnownNoise()} | options))


def calls(odd: Any) -> dict[str, Callable[[], Any]]:
    """Return every way to pass something odd."""
    release = stream().update([[0.5, 0.5]])
    towns = phd.Hierarchy(["a/b"])
    named: dict[Callable[..., Any], tuple[str, ...]] = {
        stream: ("epsilon", "window", "max_nodes", "start_after", "unit", "noise", "insert_only", "domain"),
        partial(stream, phd.PHDStream): ("threshold", "tree_share", "counter"),
        partial(phd.Box, [(0, 1)]): ("fanout", "depth", "names", "crs"),
        partial(phd.Region, shapely.box(0, 0, 1, 1)): ("fanout", "depth", "names", "crs", "tree_crs"),
        partial(phd.Network, LINES, snap=0.1): ("fanout", "depth", "names", "crs", "tree_crs", "bounds"),
        partial(phd.Network, LINES): ("snap",),
        phd.Cube: ("dimension",),
        partial(phd.Cube, 3): ("depth", "names"),
        phd.Globe: ("depth", "names"),
        partial(phd.Hierarchy, ["a/b"]): ("names",),
        phd.User: ("inserts",),
        partial(phd.User, inserts=1): ("deletes",),
        phd.Simulation: ("seed",),
        counters.Simple: ("epsilon",),
        partial(counters.Block, 1.0): ("size",),
        partial(counters.BinaryTree, 1.0): ("horizon",),
        partial(phd.PrivTree, BOX): ("epsilon",),
        partial(release.count, [[0, 0, 1, 1]]): ("confidence",),
    }
    found: dict[str, Callable[[], Any]] = {
        f"{call} {name}": partial(call, **{name: odd}) for call, names in named.items() for name in names
    }
    places: list[Callable[[Any], Any]] = [
        phd.Box, phd.Region, phd.Hierarchy, towns.points, towns.queries, release.count, release.count_in, release.to_h3,
        lambda x: release.sample(to=x), lambda x: release.cells(to=x),
        lambda x: release.plot(x), phd.Globe().from_s2_ids,
        lambda x: phd.Network(x, snap=0.1),
        lambda x: phd.Box([(0, x)]), lambda x: phd.Hierarchy([x]), lambda x: phd.Hierarchy({"a": x}),
        lambda x: towns.points([x]),
        lambda x: towns.queries([x]), lambda x: release.count([[x] * 4]), lambda x: phd.Globe().from_s2_ids([x]),
        lambda x: stream().update(x), lambda x: stream().update([[x, x]]), lambda x: stream().update(deletes=x),
        lambda x: stream().update([shapely.Point(0.5, 0.5), x]), lambda x: stream().update({"x": [x], "y": [x]}),
    ]  # fmt: skip
    return found | {f"place {i}": partial(place, odd) for i, place in enumerate(places)}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_only_errors_of_our_own(odd: Any) -> None:
    for name, call in calls(odd).items():
        error = error_of(call)
        assert error is None or isinstance(error, PhdstreamError), f"{name}: {type(error).__name__}: {error}"
        assert len(str(error)) < 1000, name


def error_of(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("unit", [phd.Event, phd.Record, phd.User, "event", 3])
def test_a_unit_is_an_instance(unit: Any) -> None:
    for method in (phd.TrackingStream, phd.PHDStream):
        with pytest.raises(InputError, match=r"Event\(\), Record\(\) or User"):
            stream(method, unit=unit)


@pytest.mark.parametrize("noise", [3, phd.Simulation, "exact"])
def test_noise_is_left_out_or_simulated(noise: Any) -> None:
    with pytest.raises(InputError, match=r"left out.*Simulation\(seed="):
        stream(noise=noise)


def test_a_budget_for_thousands_of_digits() -> None:
    with pytest.raises(PhdstreamError, match="promises nothing"):
        Budget.solve(10**5000, phd.Event())


def test_a_cube_has_as_many_attributes_as_can_be_named() -> None:
    assert np.isfinite(phd.Cube(1000).measure(np.array([1]))).all()
    for many in (1001, 10**9, 10**400):
        with pytest.raises(InputError, match="at most 1000"):
            phd.Cube(many)
    with pytest.raises(InputError, match="at most 1000"):
        phd.Box([(0, 1)] * 2000)
