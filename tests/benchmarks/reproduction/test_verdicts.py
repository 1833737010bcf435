"""Verdicts: one criterion, symmetric, corrected for the number of comparisons; claims compare what they say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from benchmarks.reproduction.claims import CLAIMS, Claim, Setting, comparisons, method
from benchmarks.reproduction.counter_claims import activation_comparisons, counter_comparisons
from benchmarks.reproduction.results import Row
from benchmarks.reproduction.verdicts import Comparison, Judged, Outcome, holm, judge
from benchmarks.reproduction.wording import evidence_text, verdict_text
from scipy import stats

BETTER, WORSE, SAME = Outcome.BETTER, Outcome.WORSE, Outcome.SAME


def compare(logs: list[float], where: str = "somewhere") -> Comparison:
    return Comparison("1", where, ("ε = 1, t0 = 2",), (tuple(logs),))


def outcomes(*comparisons: Comparison) -> list[Outcome]:
    judged = judge(comparisons)
    return [judged[one].outcome for one in comparisons]


def test_the_interval_and_p_value_are_those_of_a_t_test() -> None:
    logs = [-0.2, -0.3, -0.25, -0.1, -0.3]
    judged = judge([compare(logs)])[compare(logs)]
    expected = stats.ttest_1samp(logs, 0)
    assert judged.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert np.log([judged.low, judged.high]) == pytest.approx([interval.low, interval.high])


def test_better_and_worse_are_alike() -> None:
    logs = [0.2, 0.3, 0.25, 0.15, 0.3]
    assert outcomes(compare(logs)) == [WORSE]
    assert outcomes(compare([-value for value in logs])) == [BETTER]
    assert outcomes(compare([0.2, -0.3, 0.25, -0.2, 0.1])) == [SAME]


def test_many_comparisons_ask_for_more() -> None:
    """What is clear by itself is not among a hundred of which most are chance."""
    clear = compare([0.2, 0.3, 0.25, 0.1, 0.3])
    rng = np.random.default_rng(1)
    chance = [compare(rng.standard_normal(5).tolist(), f"{i}") for i in range(300)]
    assert outcomes(clear) == [WORSE]
    judged = judge([clear, *chance])
    assert judged[clear].outcome == SAME
    assert not any(judged[one].outcome != SAME for one in chance)


def test_data_sets_and_single_settings_are_two_families() -> None:
    """A data set of many settings is judged as one of few; its settings are corrected for their own number."""
    rng, logs = np.random.default_rng(4), (-0.2, -0.3, -0.25, -0.1, -0.3)
    settings = tuple(f"ε = {i}" for i in range(200))
    many = Comparison("1", "d", settings, tuple(tuple(logs + rng.normal(0, 0.001, 5)) for _ in settings))
    judged = judge([many])
    assert judged[many].p == pytest.approx(stats.ttest_1samp(many.by_seed, 0).pvalue)
    assert judged[many].outcome == BETTER
    assert all(judged[part].p > 20 * judged[many].p for part in many.parts())


def test_holm_is_at_least_the_p_value_and_keeps_the_order() -> None:
    p = np.random.default_rng(2).random(20) ** 3
    corrected = np.array(holm(p.tolist()))
    assert (corrected >= p).all()
    assert corrected.max() <= 1
    assert (np.diff(corrected[np.argsort(p)]) >= 0).all()
    assert corrected[np.argmin(p)] == pytest.approx(min(1, 20 * p.min()))


def test_one_seed_and_equal_results_show_no_difference() -> None:
    assert outcomes(compare([0.5])) == [SAME]
    assert outcomes(compare([0.0] * 5)) == [SAME]


def test_settings_are_averaged_within_a_seed_and_judged_by_themselves() -> None:
    both = Comparison("1", "d", ("a", "b"), ((-1.0, -1.1, -0.9), (1.0, 0.9, 1.1)))
    judged = judge([both])
    assert judged[both].ratio == pytest.approx(1)
    assert [judged[part].outcome for part in both.parts()] == [BETTER, WORSE]


def invented(errors: Mapping[str, Mapping[str, float]], **more: str) -> dict[Setting, Row]:
    """Results of methods (by data set), the same at two ε and two starts but for 1% of noise over five seeds."""
    rng, table = np.random.default_rng(3), {}
    for data, methods in errors.items():
        for epsilon, t0 in itertools.product(("0.5", "2"), ("1", "20")):
            for size, (name, error) in itertools.product(("small", "medium", "large"), methods.items()):
                entry = " ".join(f"{value:.5g}" for value in error * (1 + 0.01 * rng.standard_normal(5)))
                row = {"seeds": "1 2 3 4 5", "error": entry, "weighted_error": entry, "first": entry, "last": entry}
                table[data, size, epsilon, t0, name] = row | more
    return table


def claimed(number: str, table: dict[Setting, Row]) -> list[tuple[Judged, Outcome]]:
    asked = [(one, c.expects) for c in CLAIMS if c.number == number for one in comparisons(c, table)]
    judged = judge(one for one, _ in asked)
    return [(judged[one], expects) for one, expects in asked]


def text(number: str, table: dict[Setting, Row]) -> str:
    whole = claimed(number, table)
    asked = judge(judged.comparison for judged, _ in whole)
    parts = [(asked[part], expects) for judged, expects in whole for part in judged.comparison.parts()]
    return verdict_text(whole, parts)


def test_a_claim_that_holds_partly_says_where_it_does_not() -> None:
    table = invented({"cities": {"phdstream": 0.1, "baseline-2": 0.2}, "roads": {"phdstream": 0.1, "baseline-2": 0.05}})
    said = text("2", table)
    assert said.startswith("holds partly: worse on roads, small, roads, medium, roads, large")
    assert "cities" not in said


def test_a_claim_that_holds_and_one_that_does_not() -> None:
    assert text("8", invented({"cities": {"phdstream": 0.1, "phdstream-block": 0.2}})) == "holds"
    assert text("8", invented({"cities": {"phdstream": 0.2, "phdstream-block": 0.1}})).startswith(
        "does not hold: worse"
    )
    assert text("8", invented({"cities": {"phdstream": 0.1, "phdstream-block": 0.1}})).startswith(
        "does not hold: no difference"
    )


def test_the_repair_costs_where_it_costs() -> None:
    """Claim 21 is that nothing differs: a single start where the published score is better is named."""
    table = invented({"cities": {"phdstream": 0.1, "phdstream-published-not-private": 0.1}})
    for (data, size, epsilon, t0, name), row in table.items():
        if (size, t0, name) == ("large", "1", "phdstream"):
            table[data, size, epsilon, t0, name] = row | {"error": "0.2 0.201 0.199 0.2 0.202"}
    said = text("21", table)
    assert said.startswith("holds partly: worse on cities, large")
    table = invented({"cities": {"phdstream": 0.1, "phdstream-published-not-private": 0.1}})
    assert text("21", table) == "holds"


def test_starts_are_the_earliest_and_the_latest() -> None:
    table = invented({"cities": {"phdstream": 0.1, "baseline-3": 0.2}})
    for number, t0 in (("4", "1"), ("6", "20")):
        (judged, _), *_ = claimed(number, table)
        assert all(setting.endswith(f"t0 = {t0}") for setting in judged.comparison.settings)


def test_a_factor_is_part_of_the_claim() -> None:
    """Errors that spoil a scale are three times as large, not just larger."""
    assert text("14", invented({"a": {"phdstream": 0.1, "baseline-2": 0.5}})) == "holds"
    assert text("14", invented({"a": {"phdstream": 0.1, "baseline-2": 0.2}})).startswith("does not hold: better")


def test_seeds_are_paired_by_their_number() -> None:
    table: dict[Setting, Row] = {
        ("d", "small", "1", "1", "phdstream"): {"seeds": "1 2 3", "error": "1 2 4"},
        ("d", "small", "1", "1", "other"): {"seeds": "2 3 4", "error": "1 2 9"},
    }
    (one,) = comparisons(Claim("x", "phdstream", method("other"), BETTER), table)
    assert one.logs == ((np.log(2), np.log(2)),)


def test_claims_about_counters() -> None:
    rows = [
        {
            "horizon": str(T),
            "counter": name,
            "each": " ".join(f"{factor * T**power * (1 + i / 100):.6g}" for i in range(5)),
        }
        for T in (16, 64, 1024, 4096)
        for name, factor, power in (("Simple", 1, 0.5), ("Block 8", 2, 0.25), ("Binary Tree", 5, 0.05))
    ]
    judged = {
        (one.claim, one.where): judge([one])[one].outcome == expects for one, expects in counter_comparisons(rows)
    }
    assert judged["19", "Simple"]
    assert judged["19", "Block 8"]
    assert not judged["19", "Binary Tree"]
    assert judged["17", "Block 8 against Simple"]
    assert judged["18", "Binary Tree against Simple"]


def test_the_claim_about_activations() -> None:
    rows = [
        {"data": d, "epsilon": "1", "rare_each": each} for d, each in (("a", "0.95 0.96 0.95"), ("b", "0.8 0.81 0.8"))
    ]
    assert [outcomes(one)[0] for one, _ in activation_comparisons(rows)] == [BETTER, WORSE]


def test_evidence_has_ratio_interval_and_range() -> None:
    whole = claimed("8", invented({"cities": {"phdstream": 0.1, "phdstream-block": 0.2}}))
    asked = judge(judged.comparison for judged, _ in whole)
    parts = [(asked[part], expects) for judged, expects in whole for part in judged.comparison.parts()]
    assert evidence_text(whole, parts).startswith("cities: × 0.50 (0.4")
    assert "over 4 settings" in evidence_text(whole, parts)
