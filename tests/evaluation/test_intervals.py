"""Intervals: known values, the ends of the range, and what a resample must keep fixed."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from searchparty.evaluation.intervals import (
    MACRO_LARGE,
    Interval,
    _add_pairs,
    _resampled_means,
    bootstrap_means,
    pools,
    wilson_interval,
)


def values(*numbers: float) -> NDArray[np.float64]:
    return np.array(numbers, dtype=np.float64)


def test_wilson_intervals_match_values_worked_by_hand() -> None:
    # With z = 1.959964: 8 of 10 has centre 0.71674 and half width 0.22654; at 0 of n the upper end is z² / (n + z²).
    interval = wilson_interval(8, 10)
    assert (interval.low, interval.high) == pytest.approx((0.49016, 0.94332), abs=1e-5)
    assert wilson_interval(0, 10).high == pytest.approx(3.841459 / 13.841459, abs=1e-6)


def test_wilson_keeps_a_width_at_none_and_all_and_knows_nothing_without_trials() -> None:
    none, everything = wilson_interval(0, 20), wilson_interval(20, 20)
    assert none.low == 0.0 < none.high
    assert everything.low < 1.0 == everything.high
    assert wilson_interval(0, 0) == Interval(0.0, 1.0)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5), (1, 0)])
def test_wilson_refuses_impossible_counts(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(successes, trials)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_outside_0_to_1_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        wilson_interval(1, 2, confidence)
    with pytest.raises(ValueError, match="confidence"):
        bootstrap_means({"nq": values(0, 1)}, confidence=confidence)


@given(st.integers(1, 500).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_wilson_lies_in_0_to_1_holds_the_rate_and_mirrors(counts: tuple[int, int]) -> None:
    successes, trials = counts
    interval, mirrored = wilson_interval(successes, trials), wilson_interval(trials - successes, trials)
    assert 0.0 <= interval.low <= successes / trials <= interval.high <= 1.0
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((interval.low, interval.high))


def test_the_bootstrap_of_many_even_questions_agrees_with_the_normal_approximation() -> None:
    interval = bootstrap_means({"nq": values(*[0, 1] * 200)}, resamples=4000).datasets["nq"]
    assert (interval.low, interval.high) == pytest.approx((0.5 - 1.96 * 0.025, 0.5 + 1.96 * 0.025), abs=0.006)


def test_the_bootstrap_draws_questions_so_that_more_samples_of_the_same_questions_narrow_nothing() -> None:
    """Two questions, one always right and one never, leave the widest interval however often each was run."""
    assert bootstrap_means({"nq": values(0, 1)}).datasets["nq"] == Interval(0.0, 1.0)


def test_equal_seeds_give_equal_intervals_and_others_do_not_disturb_a_dataset() -> None:
    nq, musique = values(*np.linspace(0, 1, 30)), values(*np.linspace(0, 0.5, 17))
    both = bootstrap_means({"nq": nq, "musique": musique}, seed=3)
    assert both == bootstrap_means({"nq": nq, "musique": musique}, seed=3)
    assert both.datasets["musique"] == bootstrap_means({"musique": musique}, seed=3).datasets["musique"]
    few = bootstrap_means({"musique": musique}, seed=3, resamples=50)
    assert few != bootstrap_means({"musique": musique}, seed=4, resamples=50)


def test_datasets_are_resampled_apart_so_that_differences_between_them_do_not_widen_the_macro_interval() -> None:
    intervals = bootstrap_means({"easy": values(1, 1, 1), "hard": values(0, 0, 0, 0, 0)})
    assert intervals.macro == Interval(0.5, 0.5)


def test_one_dataset_alone_is_its_own_macro() -> None:
    intervals = bootstrap_means({"nq": values(0, 0.25, 1, 0.5)})
    assert intervals.macro == intervals.datasets["nq"]


def test_means_over_datasets_weigh_datasets_questions_or_large_datasets_alone() -> None:
    ways = pools({"large": 800, "also large": 200, "small": 199})
    assert ways["macro"] == dict.fromkeys(("large", "also large", "small"), 1 / 3)
    assert ways["micro"] == pytest.approx({"large": 800 / 1199, "also large": 200 / 1199, "small": 199 / 1199})
    assert ways[MACRO_LARGE] == {"large": 0.5, "also large": 0.5}
    assert list(pools({"small": 1})) == ["macro"] and list(pools({"a": 300, "b": 300})) == ["macro", "micro"]


def test_each_mean_over_datasets_has_the_interval_of_its_own_weights() -> None:
    intervals = bootstrap_means({"wide": values(*[0, 1] * 100), "fixed": values(*[0.5] * 600), "tiny": values(0, 1)}).pools
    assert intervals["micro"].high - intervals["micro"].low < intervals[MACRO_LARGE].high - intervals[MACRO_LARGE].low
    assert intervals[MACRO_LARGE].high - intervals[MACRO_LARGE].low < intervals["macro"].high - intervals["macro"].low


def test_values_of_which_some_are_drawn_one_by_one_give_the_interval_of_drawing_all() -> None:
    random = np.random.default_rng(2)
    many = np.concatenate([random.beta(0.4, 0.6, 1500), np.repeat([0.0, 1.0, 0.5], [800, 500, 200])])
    means = np.array([many[random.integers(3000, size=3000)].mean() for _ in range(10_000)])
    found = bootstrap_means({"nq": many}).datasets["nq"]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.0008)


@settings(deadline=None)
@given(st.integers(65, 900), st.integers(0, 3000), st.integers(0, 5))
def test_single_and_counted_draws_together_keep_the_mean_and_its_variance(single: int, shared: int, seed: int) -> None:
    """To within six standard errors of what 2,000 resamples can show."""
    random = np.random.default_rng(seed)
    values_Q = np.concatenate([random.random(single), np.full(shared, 0.25)])
    means = _resampled_means("nq", values_Q, 2000, random)
    variance = values_Q.var() / len(values_Q)
    assert abs(means.mean() - values_Q.mean()) < 6 * np.sqrt(variance / 2000)
    assert abs(means.var() / variance - 1) < 6 * np.sqrt(2 / 2000)


@pytest.mark.parametrize("draws", [0, 1, 2, 3, 255, 400])
def test_draws_made_in_pairs_hit_a_value_as_often_as_single_draws_would(draws: int) -> None:
    """Hits of 5 values among 256 are binomial: by chi-square over 20,000 sums, at a chance of one in ten thousand."""
    block, sums = np.isin(np.arange(256), [0, 1, 100, 254, 255]).astype(float), np.zeros(20_000)
    _add_pairs(sums, block, np.full(len(sums), draws), np.random.default_rng(1))
    law = stats.binom(draws, 5 / 256)
    most = int(law.ppf(1 - 50 / len(sums)))
    seen = [np.sum(sums == hits) for hits in range(most)] + [np.sum(sums >= most)]
    expected = len(sums) * np.append(law.pmf(np.arange(most)), law.sf(most - 1))
    assert np.all(sums == np.round(sums)) and (draws == 0 or stats.chisquare(seen, expected).pvalue > 1e-4)
    assert draws > 0 or not sums.any()


def test_every_pair_of_a_block_is_drawn_equally_often() -> None:
    """256 powers of an irrational tell each pair apart; 65,536 pairs at 20 draws each, by chi-square."""
    block, sums = np.sqrt(2) * np.arange(256.0) ** 2, np.zeros(20 * 65_536)
    _add_pairs(sums, block, np.full(len(sums), 2), np.random.default_rng(1))
    different, where = np.unique(np.round(np.add.outer(block, block).ravel(), 6), return_inverse=True)
    ways = np.bincount(where)
    seen = np.bincount(np.searchsorted(different, np.round(sums, 6)), minlength=len(different))
    assert stats.chisquare(seen, 20 * ways).pvalue > 1e-4


def test_numbers_of_draws_that_differ_from_resample_to_resample_stay_with_their_resample() -> None:
    draws = np.array([0, 7, 0, 0, 1, 2, 300, 0])
    sums = np.zeros(len(draws))
    _add_pairs(sums, np.full(256, 2.5), draws, np.random.default_rng(0))
    assert sums.tolist() == (2.5 * draws).tolist()


WHOLE_SETS = {
    "nq": 3610,
    "triviaqa": 11313,
    "popqa": 14267,
    "hotpotqa": 7405,
    "2wiki": 12576,
    "musique": 2417,
    "bamboogle": 125,
}


def partly_right(random: np.random.Generator, size: int, attempts: int = 4) -> NDArray[np.float64]:
    """F1 of answers of a few words, the mean over the attempts at each question [questions]."""
    right = random.random((size, attempts)) < random.beta(0.4, 0.6, size)[:, None]
    golden = np.minimum(random.geometric(0.45, (size, 1)), 8)
    said = np.minimum(random.geometric(0.35, (size, attempts)), 20)
    both = random.binomial(np.minimum(golden, said), 0.2)
    means: NDArray[np.float64] = np.where(right, 1.0, 2 * both / (golden + said)).mean(axis=1)
    return means


@pytest.mark.parametrize("score", ["exact match", "f1", "paired differences of f1", "all different"])
def test_ten_thousand_resamples_of_fifty_thousand_questions_take_about_a_second(score: str) -> None:
    random = np.random.default_rng(0)
    sets = {name: partly_right(random, size) for name, size in WHOLE_SETS.items()}
    if score == "exact match":
        sets = {name: np.round(4 * values_Q) / 4 for name, values_Q in sets.items()}
    if score == "paired differences of f1":
        sets = {name: values_Q - partly_right(random, len(values_Q)) for name, values_Q in sets.items()}
    if score == "all different":
        sets = {name: random.random(len(values_Q)) for name, values_Q in sets.items()}
    began = time.process_time()
    bootstrap_means(sets)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("bad", [{}, {"nq": values()}, {"nq": values(0.5, float("nan"))}])
def test_no_dataset_no_question_and_values_that_are_not_finite_are_refused(bad: dict[str, NDArray[np.float64]]) -> None:
    with pytest.raises(ValueError):
        bootstrap_means(bad)
