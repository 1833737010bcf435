"""docs/privacy/attacks.md: its numbers are those of docs/results/attacks.csv; the attacks find what they must."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.attacks import practices
from benchmarks.attacks.city import ARRIVES, DAYS, DOMAIN, City, square_of
from benchmarks.attacks.outcomes import EPSILONS, RESULTS, bound, read, run
from benchmarks.attacks.page import FIGURE, PAGE, draw, tables
from benchmarks.attacks.transcripts import log_likelihood
from benchmarks.privacy_picture import draw as draw_epsilon

import phdstream as phd

OURS = ("TrackingStream", "PHDStream")


def mean(attack: str, practice: str, epsilon: float, days: int) -> tuple[float, int]:
    """Return the share of right guesses over all seeds, and of how many trials."""
    of = [e for e in read(RESULTS) if (e.attack, e.practice, e.epsilon, e.days) == (attack, practice, epsilon, days)]
    return float(np.mean([each.right for each in of])), sum(each.trials for each in of)


def test_the_page_has_the_numbers_of_the_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for table in tables(read(RESULTS)).values():
        assert table in page
    assert FIGURE.exists()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("attack", ["membership", "reconstruction"])
def test_nobody_got_further_with_ours_than_epsilon_allows(attack: str, epsilon: float) -> None:
    """By more than four standard errors: the bound is a theorem, what was measured has chance in it."""
    most = bound(attack, epsilon)
    for practice in OURS if attack == "membership" else OURS[:1]:
        for days in (1, 7, DAYS - ARRIVES):
            right, trials = mean(attack, practice, epsilon, days)
            assert right <= most + 4 * math.sqrt(most * (1 - most) / trials) + 0.01


def test_usual_practice_gives_more_and_more_away() -> None:
    last = DAYS - ARRIVES
    assert mean("membership", "histogram anew each day", 1.0, last)[0] > 0.95 > bound("membership", 1.0) + 0.2
    assert mean("reconstruction", "histogram anew each day", 1.0, last)[0] > 0.9
    assert mean("membership", "the same, with a total", 1.0, 1)[0] == 1.0
    assert mean("membership", "counts, small ones hidden", 1.0, last)[0] > 0.75


class TestAttacks:
    """The attacks at a small size: they find what is there, and the likelihood ratio of ours is within ε."""

    @staticmethod
    def city(seed: int) -> City:
        return City.invented(np.random.default_rng(seed), anywhere=False)

    @pytest.mark.parametrize("epsilon", [0.5, 3.0])
    @pytest.mark.parametrize("practice", [practices.tracking, practices.phdstream])
    def test_the_loss_of_ours_is_at_most_epsilon_on_every_day(
        self, practice: practices.Practice, epsilon: float
    ) -> None:
        for seed, there in ((1, True), (2, False)):
            ratio = practice(self.city(seed), epsilon, there, seed)
            assert np.abs(ratio).max() <= epsilon + 1e-9
            assert np.abs(ratio[-1]).max() > 0.05 * epsilon  # the attack does look at what depends on the target
            assert not ratio[:ARRIVES].any()

    def test_two_ways_to_the_same_ratio(self) -> None:
        """Of places (`tracking`), and of whole transcripts with and without the target."""
        city = self.city(3)

        def make() -> phd.TrackingStream:
            return phd.TrackingStream(DOMAIN, 1.0, phd.Event(), insert_only=True)

        present, absent = practices._played(make, city, True, 3)
        whole = [log_likelihood(each, DAYS).sum() for each in (present, absent)]
        assert whole[0] - whole[1] == pytest.approx(practices.tracking(city, 1.0, True, 3)[-1, 0])

    def test_a_histogram_anew_is_worth_epsilon_a_day(self) -> None:
        ratio = practices.anew(self.city(4), 1.0, True, 4)[:, 0]
        assert np.abs(np.diff(ratio)).max() <= 1.0 + 1e-9
        assert ratio[-1] > 5

    def test_hidden_counts_tell_of_those_who_live_where_others_do(self) -> None:
        city = City([np.full((20, 2), 0.1)] * DAYS, np.array([0.1, 0.1]))
        alone = City([np.full((20, 2), 0.1)] * DAYS, np.array([0.9, 0.9]))
        for there in (True, False):
            assert practices.hidden(city, 1.0, there, 0)[-1, 0] == (np.inf if there else -np.inf)
            assert practices.hidden(alone, 1.0, there, 0)[-1, 0] == 0
            assert practices.hidden_with_total(alone, 1.0, there, 0)[-1, 0] == (np.inf if there else -np.inf)

    def test_squares(self) -> None:
        assert square_of(np.array([[0.0, 0.99], [0.99, 0.0]]), 8).tolist() == [7, 56]


@pytest.mark.slow
def test_the_command_at_a_small_size(tmp_path: Path) -> None:
    outcomes = run(seeds=[1], membership=2, reconstruction=2)
    assert {each.practice for each in outcomes} == set(practices.PRACTICES)
    draw(outcomes, tmp_path / "attacks.png")
    draw_epsilon(tmp_path / "epsilon.png")
    assert all((tmp_path / f"{name}.png").stat().st_size > 10_000 for name in ("attacks", "epsilon"))
