"""Transcripts: what a neighbour may be asked, which runs of noise may be used, what the answers cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.audit.cases import Tick, random_case
from phdstream.audit.finding import Violation
from phdstream.audit.forcing import WildNoise
from phdstream.audit.replay import played
from phdstream.audit.transcript import Recorder, Replayer, Step, check_runs, exact_loss
from phdstream.privacy import DivisibleNoise, ExactNoise, SplitRule
from phdstream.privacy.calibration import calibrate_split, log_tail

BITS = 3


def ints(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int64)


def look(at: Any, values: Any, answer: Any, first: Any, parts: Any) -> Step:
    return Step("look", 2.0, at, values, answer, 0, (first, parts))


class TestLoss:
    def test_of_noisy_sums_is_the_difference_of_their_log_probabilities(self) -> None:
        one, two = (Step("sum", 1.7, ints(1, 2), ints(*values), ints(5, -2)) for values in ((3, 0), (4, 0)))
        loss = exact_loss([one], [two], None, BITS)
        assert loss.exact == pytest.approx(-(1 / 1.7))
        assert loss.at_worst == pytest.approx(1 / 1.7)

    @pytest.mark.parametrize("above", [True, False])
    def test_of_a_split_test_is_that_of_its_outcome_alone(self, above: bool) -> None:
        rule = calibrate_split(0.5, 4)
        one, two = (Step("split", rule.scale, ints(1), ints(value), np.array([above])) for value in (1, 2))
        tails = [log_tail(1 - value if above else value, rule.scale) for value in (1, 2)]
        assert exact_loss([one], [two], rule, BITS).exact == pytest.approx(tails[0] - tails[1])

    def test_of_a_fine_count_is_that_of_its_last_look(self) -> None:
        def looks(x: int) -> list[Step]:
            coarse = look(ints(1), ints(4 + x), ints(9), ints(0), ints(2))
            return [coarse, look(ints(2, 3), ints(1 + x, 3), ints(4, 5), ints(0, 1), ints(1, 1))]

        loss = exact_loss(looks(0), looks(1), None, BITS)
        assert loss.exact == pytest.approx(-0.5)
        assert loss.at_worst == 0.5

    def test_has_no_bound_if_an_earlier_look_tells_more(self) -> None:
        def looks(x: int) -> list[Step]:
            coarse = look(ints(1), ints(4 + x), ints(9), ints(0), ints(2))
            return [coarse, look(ints(2, 3), ints(1, 3), ints(4, 5), ints(0, 1), ints(1, 1))]

        with pytest.raises(Violation, match="tells more than the last"):
            exact_loss(looks(0), looks(1), None, BITS)


class TestRuns:
    first = look(ints(1), ints(4), ints(4), ints(0), ints(4))

    @pytest.mark.parametrize(
        ("nodes", "first", "parts", "what"),
        [
            ((2, 3), (0, 0), (1, 1), "runs of noise of different nodes overlap"),
            ((2, 4), (0, 2), (1, 1), "nodes that are counted together overlap"),
            ((2, 3), (0, 4), (1, 1), "not part of what was drawn"),
            ((2, 3), (0, 2), (2, 1), "ended with noise undivided"),
        ],
    )
    def test_that_are_wrong_are_told(self, nodes: Any, first: Any, parts: Any, what: str) -> None:
        second = look(ints(*nodes), ints(0, 0), ints(0, 0), ints(*first), ints(*parts))
        with pytest.raises(Violation, match=what):
            check_runs([self.first, second], BITS)

    def test_of_another_place_are_told(self) -> None:
        before = look(ints(2, 3), ints(0, 0), ints(0, 0), ints(0, 2), ints(2, 2))
        swapped = look(ints(4, 6), ints(0, 0), ints(0, 0), ints(2, 0), ints(1, 1))
        with pytest.raises(Violation, match="another place"):
            check_runs([before, swapped], BITS)

    def test_that_nest_are_right(self) -> None:
        check_runs([self.first, look(ints(2, 6, 7), ints(0, 0, 0), ints(0, 0, 0), ints(0, 2, 3), ints(1, 1, 1))], BITS)


class TestReplayer:
    def test_refuses_another_question(self) -> None:
        recorder = Recorder(ExactNoise(), None)
        recorder.add(ints(1, 2), 3.0, at=ints(2, 3))
        for scale, at in ((3.5, ints(2, 3)), (3.0, ints(2, 4))):
            with pytest.raises(Violation, match="what is asked depends on private data"):
                Replayer(recorder.steps, None, 1).add(ints(1, 2), scale, at=at)

    def test_refuses_a_further_question_and_one_less(self) -> None:
        recorder = Recorder(ExactNoise(), None)
        recorder.add(ints(1), 3.0, at=ints(2))
        replayer = Replayer(recorder.steps, None, 1)
        with pytest.raises(Violation, match="how much is asked"):
            replayer.finish()
        assert replayer.add(ints(7), 3.0, at=ints(2)).tolist() == recorder.steps[0].answer.tolist()
        replayer.finish()
        with pytest.raises(Violation, match="a further question"):
            replayer.add(ints(7), 3.0, at=ints(2))

    def test_a_split_test_can_only_be_compared_with_its_threshold(self) -> None:
        rule = SplitRule(2.0, 2, 5)
        noisy = Recorder(ExactNoise(), rule).add(ints(1000, -1000), 2.0, at=ints(1, 2))
        with pytest.raises(Violation, match="another threshold"):
            _ = noisy > 4
        with pytest.raises(TypeError):
            int(noisy)
        assert (noisy > 5).tolist() == [True, False]

    def test_a_look_with_other_noise_than_its_parts_is_told(self) -> None:
        class OnePart(DivisibleNoise):
            def add(self, values: Any, first: Any, parts: Any, at: Any) -> Any:
                return super().add(values, first, np.ones_like(parts), at)

        class Wrong(ExactNoise):
            def divisible(self, scale: float, parts: Any, at: Any) -> DivisibleNoise:
                return OnePart(np.arange(1, int(parts.sum()) + 1))

        noise = Recorder(Wrong(), None).divisible(1.0, ints(2), at=ints(1))
        with pytest.raises(Violation, match="other noise than the parts"):
            noise.add(ints(5), ints(0), ints(2), at=ints(1))


@pytest.mark.parametrize("method", [phd.PHDStream, phd.TrackingStream])
def test_replayed_streams_release_the_same_whatever_is_in_them(method: Any) -> None:
    def make() -> Any:
        return method(phd.Box([(0, 1)], depth=4), 1.0, phd.Event())

    def ticks(seed: int) -> list[Tick]:
        rng = np.random.default_rng(seed)
        return [Tick([rng.random((n, 1)), rng.random((2, 1))], [["-"] * n, ["-"] * 2]) for n in (9, 40, 3)]

    rule = getattr(make(), "rule", None)
    recorder = Recorder(WildNoise(1), rule)
    first = played(make(), ticks(1), recorder, {2})
    replayer = Replayer(recorder.steps, rule, 12345)
    second = played(make(), ticks(2), replayer, {1})
    replayer.finish()
    for a, b in zip(first, second, strict=True):
        assert all(np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f") for name in a)


def test_random_cases_are_the_same_for_the_same_seed_and_of_all_kinds() -> None:
    one, again = random_case(3), random_case(3)
    assert one.name == again.name
    assert one.limit == again.limit
    cases = [random_case(seed) for seed in range(60)]
    assert len({case.name.split("(")[0] for case in cases}) == 2
    assert any(case.resume_at for case in cases)
    assert {case.wild for case in cases} == {True, False}
    assert any(case.only_deletes for case in cases)
    from_priors = [case for case in cases if "prior=" in case.name]
    assert len(from_priors) > 5
    assert any("start_after" in case.name for case in from_priors)
    assert all(math.isfinite(case.limit) for case in cases)
