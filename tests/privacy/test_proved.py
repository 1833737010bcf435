"""What is not proved here needs an opt-in, and then shows in the description and in every release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import phdstream as phd
from phdstream.counters import ByLevel, Counter, Simple
from phdstream.errors import InputError
from phdstream.page.facts import promise
from phdstream.privacy import Budget, ExactNoise
from phdstream.streams.engine import LocalEngine, open_engine
from phdstream.streams.paper.method import PaperMethod
from phdstream.streams.paper.selective_counting import NoisyMax
from phdstream.streams.setting import Setting
from phdstream.streams.stream import Stream
from tests.noises import KnownNoise

BOX = phd.Box([(0, 1)], depth=4)
VOUCHED = "Ann Smith has proved it, report 7"


class OwnNoise(KnownNoise):
    unproved = ""


class OwnCounter(Simple):
    """A counter of a proved kind with something changed: not of that kind any more."""


class OwnBox(phd.Box):
    """A domain that places points in some other way."""


class OwnCategory(phd.Category):
    """An attribute that reads values in some other way."""


class VouchedCategory(OwnCategory):
    unproved = VOUCHED


class VouchedNoise(OwnNoise):
    unproved = VOUCHED


class VouchedCounter(OwnCounter):
    unproved = VOUCHED


class VouchedBox(OwnBox):
    unproved = VOUCHED


def with_noise(noise: Any) -> Callable[[], Any]:
    return lambda: phd.TrackingStream(BOX, 1.0, phd.Event(), noise=noise())


def with_counter(counter: Callable[[float], Counter]) -> Callable[[], Any]:
    return lambda: phd.PHDStream(BOX, 1.0, phd.Event(), counter=counter)


def with_domain(domain: Any) -> Callable[[], Any]:
    return lambda: phd.TrackingStream(domain([(0, 1)], depth=4), 1.0, phd.Event())


def with_place(domain: Any) -> Callable[[], Any]:
    return with_product(lambda: phd.Product(domain([(0, 1)], depth=4), phd.Bins("age", [0, 18, 99])))


def with_attribute(kind: Any) -> Callable[[], Any]:
    return with_product(lambda: phd.Product(BOX, kind("age", ["1", "2"])))


def with_product(product: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: phd.TrackingStream(product(), 1.0, phd.Event())


def by_level(kind: type[Counter]) -> Callable[[float], Counter]:
    return lambda epsilon: ByLevel(epsilon, (Simple(epsilon), kind(epsilon)), (1, 2))


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (with_noise(OwnNoise), "source of noise"),
        (with_counter(OwnCounter), "counter"),
        (with_counter(by_level(OwnCounter)), "counter"),
        (with_domain(OwnBox), "domain"),
        (with_place(OwnBox), "place"),
        (with_attribute(OwnCategory), "attribute"),
    ],
)
def test_what_is_not_proved_is_refused(make: Callable[[], Any], what: str) -> None:
    with pytest.raises(InputError, match=f"is a {what} of your own, and that it keeps ε is not proved here"):
        make()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (with_noise(VouchedNoise), "the source of noise VouchedNoise"),
        (with_counter(VouchedCounter), "the counter VouchedCounter"),
        (with_counter(by_level(VouchedCounter)), "the counter VouchedCounter"),
        (with_domain(VouchedBox), "the domain VouchedBox"),
        (with_place(VouchedBox), "the place VouchedBox"),
        (with_attribute(VouchedCategory), "the attribute VouchedCategory"),
    ],
)
def test_with_an_opt_in_it_is_taken_and_shows(make: Callable[[], Any], what: str) -> None:
    stream, said = make(), f"{what} is not proved here ({VOUCHED})"
    release = stream.update([(0.1, 1)] if stream.domain.attributes else [(0.1,)])
    assert said in stream.describe()
    assert "If that holds, whatever is published" in stream.describe()
    assert said in release.privacy
    assert promise({}, release)["unproved"] == said
    assert said in release.cells().schema.metadata[b"privacy"].decode()


class City:
    """A unit of one's own: what it says of itself would be printed as the promise."""

    guarantee = "each whole city"

    def worst_cases(self) -> tuple[tuple[int, int], ...]:
        return ((1, 0), (0, 1))

    def to_dict(self) -> dict[str, Any]:
        return {"type": "event"}


class LenientUser(phd.User):
    """It says that it has many events, and is counted as having one."""

    def worst_cases(self) -> tuple[tuple[int, int], ...]:
        return ((1, 0),)


class OwnMethod(PaperMethod):
    """A mechanism with something changed."""


class OwnEngine(LocalEngine):
    """It counts in some other way."""


@pytest.mark.parametrize("unit", [City(), LenientUser(5, 5)], ids=lambda unit: type(unit).__name__)
@pytest.mark.parametrize("make", [phd.PHDStream, phd.TrackingStream])
def test_a_unit_of_ones_own_is_refused(make: Any, unit: Any) -> None:
    with pytest.raises(InputError, match="is no unit of privacy of this library"):
        make(BOX, 1.0, unit)


def test_a_method_of_ones_own_is_refused() -> None:
    setting = Setting(BOX, phd.Event(), window=None, insert_only=False, start_after=1, max_nodes=100)
    method = OwnMethod(setting, Budget.solve(1.0, phd.Event()), ExactNoise(), "simple", 0, 0.5)
    with pytest.raises(InputError, match="is no method of this library"):
        Stream(setting, method)


def test_an_engine_of_ones_own_is_refused() -> None:
    with pytest.raises(InputError, match="is no engine of this library"):
        open_engine(OwnEngine("mine"))


def test_noise_that_is_put_in_later_shows_too() -> None:
    stream = phd.TrackingStream(BOX, 1.0, phd.Event())
    assert "not proved" not in stream.describe()
    stream.noise = OwnNoise()
    assert "the source of noise OwnNoise is not proved here (nobody vouches for it)" in stream.describe()
    assert "nobody vouches for it" in stream.update([(0.1,)]).privacy


def test_selective_counting_refuses_counters_of_ones_own() -> None:
    selector = NoisyMax(1.0, range(2), lambda value, labels: value)
    with pytest.raises(InputError, match="not proved here"):
        phd.SelectiveCounting(OwnCounter(1.0), selector, lambda value, labels: value, noise=phd.Simulation(1))


@pytest.mark.parametrize("counter", ["simple", "block", "binary", "hybrid"])
def test_our_own_are_proved(counter: str) -> None:
    assert "not proved" not in phd.PHDStream(BOX, 1.0, phd.Event(), counter=counter).describe()
