"""The static guards: the source passes them, their tables have no stale line, and each is seen to catch what it is for.

They look at the text of the source (`ast`), so they see what no run happens to do. What they cannot see: what other
packages do, names made at run time, and private values that pass through functions whose annotations do not say so.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import phdstream as phd
from phdstream.arrays import Ints
from phdstream.privacy import DivisibleNoise, user_ids
from phdstream.streams.intake import EncodedEvents
from phdstream.streams.private_codes import PrivateCodes
from tests.guards import disclosure, floats, randomness
from tests.guards.sources import Finding, planted, sources
from tests.noises import KnownNoise

MECHANISM = "phdstream.streams.tracking.mechanism.mechanism"
USES = ["np.random.default_rng().integers(3)", "hash('a')", "id(events)", "datetime.now().second"]
USES += ["int(np.datetime64('now'))", "xp.random.default_rng().integers(3)", "getattr(np, 'random').bytes(1)[0]"]
GUARDS = {"randomness": (randomness, randomness.ALLOWED), "floats": (floats, floats.PUBLIC)}
GUARDS |= {"disclosure": (disclosure, disclosure.ALLOWED)}


@pytest.mark.parametrize("name", GUARDS)
def test_the_source_passes(name: str) -> None:
    guard, allowed = GUARDS[name]
    assert [found for found in guard.findings(sources()) if found.place not in allowed] == []


@pytest.mark.parametrize("name", GUARDS)
def test_nothing_is_allowed_that_is_not_there(name: str) -> None:
    guard, allowed = GUARDS[name]
    assert sorted(allowed.keys() - {found.place for found in guard.findings(sources())}) == []


def new(guard: str, module: str, old: str, planted_text: str) -> list[Finding]:
    """Return what a guard finds in the source with a violation planted, and may not be."""
    found, allowed = GUARDS[guard]
    changed = planted(module, old, planted_text)
    if guard == "disclosure":  # looks at one module after the other
        changed = {module: changed[module]}
    return [finding for finding in found.findings(changed) if finding.place not in allowed]


class TestRandomness:
    @pytest.mark.parametrize(
        "statement",
        [
            "import random",
            "import numpy.random",
            "from numpy import random",
            "from numpy.random import default_rng",
            "from time import time_ns",
            "import secrets",
            "from os import urandom",
            "clock = __import__('time')",
        ],
    )
    def test_an_import_in_a_room_that_releases(self, statement: str) -> None:
        """Also far from the noise: in the drawing of whole points, in a domain, in the writing of files."""
        far = ("phdstream.domains.apportion", "phdstream.streams.tracking.model.totals", "phdstream.io.sinks.estimates")
        for module in (MECHANISM, *far):
            line = "from phdstream."
            old = next(text for text in sources()[module].splitlines() if text.startswith(line))
            (found,) = {each.module for each in new("randomness", module, old, f"{old}\n{statement}")}
            assert found == module

    @pytest.mark.parametrize("use", USES)
    def test_a_use(self, use: str) -> None:
        old = "        noisy = self._count([events], np.array([ROOT]), epsilon)\n"
        found = new("randomness", MECHANISM, old, old + f"        noisy = noisy + {use}\n")
        assert [finding.function for finding in found] == ["Mechanism.take_tick"]

    def test_a_module_that_was_not_reached_before(self) -> None:
        """The graph is followed: a room outside becomes part of it when one that releases imports it."""
        assert "phdstream.app.prepare" not in randomness.reach(sources())
        old = "from phdstream.streams.state import Arrays, nest, unnest"
        within = f"{old}\nfrom phdstream.app import prepare"
        assert "phdstream.app.prepare" in randomness.reach(planted(MECHANISM, old, within))
        assert {found.module for found in new("randomness", MECHANISM, old, within)} >= {
            "phdstream.streams.durable.locked_folder"
        }

    def test_all_that_releases_is_reached(self) -> None:
        reached = randomness.reach(sources())
        assert {"phdstream.release.release", "phdstream.domains.region.region", "phdstream.streams.intake"} <= reached


class TestFloats:
    @pytest.mark.parametrize(
        "expression",
        ["noisy * 1.0", "noisy / 1", "noisy.astype(np.float64)", "noisy + math.floor(2)", "np.sqrt(noisy)", "float(9)",
         "noisy + np.zeros(1)", "noisy.astype('f8')", "np.array(noisy, dtype='d')", "np.floor(noisy)", "np.rint(noisy)",
         "np.bincount(zones, weights=noisy)", "np.full(3, noisy, np.float16)"],
    )  # fmt: skip
    def test_on_the_way(self, expression: str) -> None:
        old = "        self._batch[kind] = self._nothing()[kind]\n"
        found = new("floats", MECHANISM, old, old + f"        noisy = {expression}\n")
        assert {finding.function for finding in found} == {"Mechanism.count_zones"}

    @pytest.mark.parametrize(
        "statement", ["import numpy as xp", "from numpy import sqrt", "from math import exp", "import math as m"]
    )
    def test_numpy_by_another_name(self, statement: str) -> None:
        old = "from phdstream.domains import ROOT\n"
        assert len(new("floats", MECHANISM, old, f"{old}{statement}\n")) == 1

    @pytest.mark.parametrize("place", ["_KINDS = TickEvents._fields\n", "class Mechanism:\n"])
    def test_a_float_that_has_a_name(self, place: str) -> None:
        own = place.startswith("class")
        constant = f"{place}    half = 0.5\n\n" if own else f"{place}half = 0.5\n"
        old = "        self._batch[kind] = self._nothing()[kind]\n"
        changed = planted(MECHANISM, old, old + f"        noisy = noisy * {'self.' if own else ''}half\n")
        changed[MECHANISM] = changed[MECHANISM].replace(place, constant)
        found = [each for each in floats.findings(changed) if each.place not in floats.PUBLIC]
        assert [finding.function for finding in found] == ["Mechanism.count_zones"]

    def test_a_float_in_a_counter(self) -> None:
        old = "output = state[:, 1] + noise.add(values, scale_for(self.epsilon), at)"
        found = new("floats", "phdstream.streams.paper.counters.counter", old, old.replace("values,", "values * 0.5,"))
        assert [finding.what for finding in found] == ["the number 0.5"]

    def test_exact_counts_asked_for_elsewhere(self) -> None:
        module, old = "phdstream.streams.tracking.method", "        model.pass_tick()\n"
        found = new("floats", module, old, old + "        waiting[0].inserts.spend(0.0).within(np.array([1]))\n")
        assert {finding.what for finding in found} == {"asks for exact counts"}


class TestDisclosure:
    @pytest.mark.parametrize(
        ("statement", "what"),
        [
            ('raise ValueError(f"{exact.within(nodes)}")', "a private value in an error"),
            ("raise ValueError(len(events))", "a private value in an error"),
            ('assert nodes.size, f"{exact.within(nodes)}"', "a private value in an error"),
            ('logging.getLogger("x").info("%s", events)', "a private value in a message"),
            ("self._log.warning(exact.within(nodes))", "a private value in a message"),
            ("error.add_note(str(exact.within(nodes)))", "a private value in a message"),
            ('print("counted", events)', "a private value in a message"),
            ('logging.info("%s", exact.within(nodes).sum())', "a private value in a message"),
            ('warnings.warn(f"{np.max(exact.within(nodes))} events")', "a private value in a message"),
            ("total = int(exact.within(nodes)[0]); publish(total)", "a private value in what is public"),
            ("Release(events)", "a private value in what is public"),
            ("if exact.within(nodes)[0] > 100: nodes = nodes[:1]", "a private value decides"),
            ("nodes = nodes[:1] if (exact.within(nodes) > 9).any() else nodes", "a private value decides"),
        ],
    )
    def test_what_must_not_be(self, statement: str, what: str) -> None:
        old = "        exact = _Net([kind.spend(epsilon) for kind in events])\n        return self.noise"
        planted_text = old.replace("        return", f"        {statement}\n        return")
        assert what in {finding.what for finding in new("disclosure", MECHANISM, old, planted_text)}

    def test_a_size_that_decides_when_a_block_ends(self) -> None:
        module, old = "phdstream.streams.tracking.method", "due = model.block_due()"
        found = new("disclosure", module, old, f"{old} or len(self._mechanism._batch[0]._all_codes()) > 100")
        assert {finding.what for finding in found} == {"a private value decides"}

    def test_a_count_in_a_message_of_the_intake(self) -> None:
        module, old = "phdstream.streams.intake", "            outside = np.flatnonzero(~inside)\n"
        text = old + '            raise InputError(f"{self.tally.outside} outside")\n'
        assert [finding.function for finding in new("disclosure", module, old, text)] == ["Intake._codes"]


class Watch(KnownNoise):
    """Refuses to be given anything but whole numbers: the guard at run time, on the same way."""

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        assert values.dtype == np.int64
        assert isinstance(scale, float)
        return super().add(values, scale, at)

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        assert parts.dtype == np.int64
        return super().divisible(scale, parts, at)


@pytest.mark.parametrize("make", [phd.PHDStream, phd.TrackingStream])
@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_noise_is_given_whole_numbers_only(make: type[phd.PHDStream | phd.TrackingStream], many: bool) -> None:
    rng = np.random.default_rng(1)
    for counter in ("simple", "block", "hybrid") if make is phd.PHDStream else ("",):
        options = {"counter": counter} if counter else {}
        stream = make(phd.Box([(0, 1), (0, 1)], depth=4), 1.0, phd.Event(), **options)  # type: ignore[arg-type]
        stream.noise = Watch()
        for _ in range(4):
            stream.update(rng.random((140_000 if many else 40, 2)), rng.random((20, 2)))


def test_private_values_do_not_show_what_is_in_them() -> None:
    codes, users = np.array([123456, 654321]), user_ids(["ann-smith", "bob-jones"], 2, "inserts")
    for value in (EncodedEvents(codes, users), users, PrivateCodes(20, Fraction(1), codes)):
        assert not any(word in repr(value) for word in ("123456", "ann-smith", "616e6e"))
