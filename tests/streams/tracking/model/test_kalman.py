"""The filter of split contrasts."""

from __future__ import annotations

import numpy as np
import pytest

import phdstream as phd
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.emptiness import Emptiness
from phdstream.streams.tracking.model.kalman import Learning, kalman_update
from phdstream.streams.tracking.model.least_squares import NoisyCounts, weighted_least_squares
from phdstream.streams.tracking.model.split_tree import UNKNOWN, SplitTree
from phdstream.streams.tracking.parameters import EmptyHalves, Filter

LINE = BinaryTree(phd.Box([(0, 1)], depth=6))


def learning(drift: float, prior_empty: float | None = None) -> Learning:
    new_variance = UNKNOWN if prior_empty is None else Emptiness(EmptyHalves(), prior_empty).new_variance
    return Learning(Filter(), drift, new_variance=new_variance)


def one_split(contrast: float, variance: float) -> SplitTree:
    return SplitTree(np.array([1]), np.array([contrast]), np.array([variance]))


def _normal_pair(rng: np.random.Generator, first: float, second: float) -> tuple[float, float]:
    """Return two noisy counts, of standard deviation 10."""
    return rng.normal(first, 10), rng.normal(second, 10)


class TestFilter:
    @staticmethod
    def learn(splits: SplitTree, first: float, second: float, noise: float, mass: float, how: Learning) -> SplitTree:
        counts = NoisyCounts(np.array([2, 3]), np.array([first, second]), np.array([noise, noise]))
        return kalman_update(LINE, splits, weighted_least_squares(counts), mass, first + second, how)

    def test_exact_counts_of_everything_are_taken_as_they_are(self) -> None:
        splits = self.learn(SplitTree.empty(), 30, 10, 1e-9, 40, learning(1.0))
        assert splits.contrast[0] == pytest.approx(0.5)
        assert splits.variance[0] == pytest.approx(0, abs=1e-6)

    def test_noise_without_news_teaches_little(self) -> None:
        splits = self.learn(one_split(0.5, 1e-4), -30, 40, 1e4, 1000, learning(0.1))
        assert splits.contrast[0] == pytest.approx(0.5, abs=0.02)

    def test_a_thin_half_beside_a_dense_one_does_not_follow_noise(self) -> None:
        rng, known = np.random.default_rng(3), one_split(0.99, 1e-8)
        thin = []
        for _ in range(100):  # the thin half held 500 of 100,000 and gets 100 of 20,000
            first, second = rng.normal([19_900, 100], 100)
            contrast = float(self.learn(known, first, second, 1e4, 120_000, learning(0.05)).contrast[0])
            thin.append((1 - contrast) / 2 * 120_000)
        assert np.mean(thin) == pytest.approx(600, abs=10)
        assert np.std(thin) < 0.4 * 100

    def test_points_that_suddenly_come_to_a_thin_half_are_believed(self) -> None:
        for contrast in (0.99, 1.0):
            there = (1 - contrast) / 2 * 100_000
            splits = self.learn(one_split(contrast, 1e-8), 17_000, 3_000, 900.0, 120_000, learning(0.05))
            assert (1 - splits.contrast[0]) / 2 * 120_000 == pytest.approx(there + 3_000, rel=0.15)

    @pytest.mark.slow
    def test_many_blocks_of_noisy_counts_find_the_contrast_and_know_how_well(self) -> None:
        rng, errors, variances = np.random.default_rng(1), [], []
        for _ in range(300):
            splits, mass = self.learn(SplitTree.empty(), *_normal_pair(rng, 70, 30), 100.0, 100, learning(1.0)), 100.0
            for _ in range(6):
                mass += 50
                splits = self.learn(splits, *_normal_pair(rng, 35, 15), 100.0, mass, learning(0.05))
            errors.append(splits.contrast[0] - 0.4)
            variances.append(splits.variance[0])
        assert abs(np.mean(errors)) < 0.02
        assert np.std(errors) == pytest.approx(np.sqrt(np.mean(variances)), rel=0.25)

    def test_where_halves_are_often_empty_a_first_count_is_not_drawn_to_the_middle(self) -> None:
        """Fifty points that nobody had measured, and thirty more, all in one half, counted with much noise."""

        def contrast(prior_empty: float) -> float:
            return float(self.learn(SplitTree.empty(), 30, 0, 400.0, 80, learning(0.05, prior_empty)).contrast[0])

        assert 0 < contrast(prior_empty=0.02) < contrast(prior_empty=0.5) < contrast(prior_empty=0.8)

    def test_contrasts_stay_contrasts(self) -> None:
        rng = np.random.default_rng(2)
        splits = SplitTree.empty()
        for _ in range(200):
            first, second = rng.normal(0, 100, 2)
            splits = self.learn(splits, first, second, 50.0, max(first + second, 0.0), learning(0.3, 0.5))
            assert splits.sound()

    def test_a_node_that_was_not_measured_keeps_its_contrast(self) -> None:
        known = SplitTree(np.array([1, 2, 3]), np.array([0.1, 0.2, 0.3]), np.full(3, 0.01))
        after = self.learn(known, 300, 20, 10.0, 400, learning(0.1))
        assert after.node.tolist() == [1, 2, 3]
        assert after.contrast[1:].tolist() == [0.2, 0.3]
        assert after.contrast[0] > 0.1

    def test_a_half_where_nothing_can_be_stays_empty(self) -> None:
        """Whatever was counted beside it."""
        counted = NoisyCounts(np.array([3]), np.array([5.0]), np.array([100.0]))
        layers = weighted_least_squares(NoisyCounts.concat(counted, NoisyCounts.known_empty(np.array([2]))))
        assert kalman_update(LINE, SplitTree.empty(), layers, 5.0, 5.0, learning(1.0)).contrast[0] == -1

    def test_points_that_are_no_kin_of_the_old_ones_tell_nothing_of_them(self) -> None:
        """Uncertain 1,000 points, of which 100 more tell where they are: unless those came from elsewhere."""
        uncertain = one_split(0.0, 0.2)
        counts = NoisyCounts(np.array([2, 3]), np.array([90.0, 10.0]), np.ones(2))
        layers = weighted_least_squares(counts)
        kin, strangers = (
            kalman_update(LINE, uncertain, layers, 1100.0, 100.0, Learning(Filter(), 0.05, kinship)).contrast[0]
            for kinship in (1.0, 0.0)
        )
        assert kin > 0.5
        assert strangers == pytest.approx(80 / 1100, abs=0.03)
