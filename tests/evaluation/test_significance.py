"""Tests of differences against references: scipy, enumeration, and simulation."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from searchparty.evaluation.intervals import MACRO_LARGE, FloatArray, bootstrap_means
from searchparty.evaluation.protocols.types import load_protocol
from searchparty.evaluation.significance import holm, mcnemar_exact, randomisation_p, smallest_detectable


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test_of_the_discordant_questions(first: int, second: int) -> None:
    expected = 1.0 if first + second == 0 else stats.binomtest(first, first + second).pvalue
    assert mcnemar_exact(first, second) == pytest.approx(expected, abs=1e-12)


def test_the_randomisation_test_agrees_with_all_exchanges_enumerated() -> None:
    sets = {"a": np.array([0.5, -0.25, 1.0, 0.0, 0.75]), "b": np.array([0.25, 0.25, -0.5])}
    observed = abs(np.mean([values.mean() for values in sets.values()]))
    reached = [
        abs(np.mean([(sets["a"] * signs[:5]).mean(), (sets["b"] * signs[5:]).mean()])) >= observed - 1e-12
        for signs in (np.array(signs) for signs in product((1, -1), repeat=8))
    ]
    assert randomisation_p(sets, draws=200_000) == pytest.approx(np.mean(reached), abs=0.005)


def test_the_randomisation_test_agrees_with_scipy_on_one_dataset() -> None:
    differences = np.random.default_rng(3).choice([-1, -0.5, 0, 0.5, 1], size=60, p=[0.1, 0.2, 0.2, 0.3, 0.2])
    scipys = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1)
    )
    assert randomisation_p({"a": differences}, draws=20_000) == pytest.approx(scipys.pvalue, abs=0.01)


def test_equal_systems_have_p_1_and_interval_0() -> None:
    same = {"a": np.zeros(10)}
    interval = bootstrap_means(same).macro
    assert randomisation_p(same) == 1.0 and (interval.low, interval.high) == (0.0, 0.0)
    assert smallest_detectable(same) == 0.0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0] and holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(after >= before for before, after in zip(values, adjusted, strict=True))
    order = np.argsort(values, kind="stable")
    assert list(np.array(adjusted)[order]) == sorted(adjusted)


def test_the_detectable_difference_is_detected_four_times_in_five() -> None:
    random = np.random.default_rng(5)
    noise = {"a": random.normal(0, 0.5, 400), "b": random.normal(0, 0.3, 200)}
    noise = {name: values - values.mean() for name, values in noise.items()}
    effect = smallest_detectable(noise)
    found = 0
    for _ in range(400):
        drawn = {name: values[random.integers(len(values), size=len(values))] for name, values in noise.items()}
        error = np.sqrt(sum(values.var(ddof=1) / len(values) for values in drawn.values())) / 2
        found += abs(np.mean([values.mean() for values in drawn.values()]) + effect) > 1.96 * error
    assert 0.72 < found / 400 < 0.88


def test_a_dataset_of_one_question_detects_nothing() -> None:
    assert smallest_detectable({"a": np.array([1.0])}) == float("inf")


def test_counted_draws_are_the_bootstrap_of_the_questions_themselves() -> None:
    values = np.repeat([0.0, 0.25, 1.0], [30, 50, 20])
    ours = bootstrap_means({"a": values}, resamples=40_000).datasets["a"]
    random = np.random.default_rng(1)
    means = values[random.integers(100, size=(40_000, 100))].mean(axis=1)
    assert (ours.low, ours.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.004)


PAPER_SIZES = {name: part.questions for name, part in load_protocol("multiagent-opd").datasets.items()}
"""The paper names seven sets and 5,000 questions in all; how many of each is its protocol's choice."""
HARDNESS = np.random.default_rng(7).beta(0.6, 0.9, 20_000)
"""The chance that an attempt answers each of very many questions, from which the simulated sets are drawn."""
PAIRS = 500


def simulated_pair(random: np.random.Generator, kind: str) -> tuple[dict[str, FloatArray], float]:
    """Differences by question of two systems with four attempts each, and the difference over all questions there are."""
    moved = np.clip(HARDNESS + random.uniform(-0.08, 0.08) + random.normal(0, 0.1, len(HARDNESS)), 0, 1)
    partial = 0.5 if kind == "f1" else 0.0
    differences = {}
    for name, size in PAPER_SIZES.items():
        drawn = random.integers(len(HARDNESS), size=size)
        ours, theirs = (random.random((size, 4)) < chance[drawn, None] for chance in (moved, HARDNESS))
        if kind == "f1":  # an attempt that is not right earns a part, half a point in the mean
            ours, theirs = (np.where(right, 1, random.integers(0, 101, (size, 4)) / 100) for right in (ours, theirs))
        differences[name] = ours.mean(axis=1) - theirs.mean(axis=1)
    return differences, float((moved - HARDNESS).mean()) * (1 - partial)


@pytest.mark.parametrize("kind", ["exact match", "f1"])
def test_intervals_of_paired_differences_cover_the_truth_as_often_as_they_say(kind: str) -> None:
    """500 pairs of systems over seven sets of the paper's sizes, each pair with a difference of its own."""
    random = np.random.default_rng(11)
    covered = Counter[str]()
    for seed in range(PAIRS):
        differences, truth = simulated_pair(random, kind)
        found = bootstrap_means(differences, resamples=1000, seed=seed)
        covered.update(way for way, interval in found.pools.items() if interval.low <= truth <= interval.high)
        covered["a single set"] += sum(one.low <= truth <= one.high for one in found.datasets.values())
    shares = {way: count / PAIRS / (len(PAPER_SIZES) if way == "a single set" else 1) for way, count in covered.items()}
    assert set(shares) == {"macro", "micro", MACRO_LARGE, "a single set"}
    assert all(0.93 <= share <= 0.97 for share in shares.values()), shares
