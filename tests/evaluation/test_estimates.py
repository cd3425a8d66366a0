"""Estimates of data that hardly scatter, where a bootstrap alone would be sure of everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.evaluation.estimates import Estimate, estimate_differences, estimate_means, estimate_rates
from searchparty.evaluation.intervals import wilson_interval


@pytest.mark.parametrize("value", [0.0, 0.25, 0.6667, 1.0])
@pytest.mark.parametrize("questions", [1, 24])
def test_a_rate_that_all_questions_share_has_a_width(value: float, questions: int) -> None:
    one = estimate_rates({"nq": np.full(questions, value)})["nq"]
    law = wilson_interval(value * questions, questions)
    assert (one.low, one.high) == pytest.approx((law.low, law.high))
    assert 0 <= one.low <= value <= one.high <= 1 and one.high - one.low > 0.1


def test_of_one_question_little_is_known() -> None:
    one = estimate_rates({"nq": np.array([1.0])})["macro"]
    assert one.low == pytest.approx(0.2065, abs=1e-4) and one.high == 1.0
    better = estimate_differences({"nq": np.array([1.0])})["macro"]
    assert better.low == pytest.approx(2 * 0.2065 - 1, abs=1e-4) and better.high == 1.0, "0 is not excluded"


def test_equal_systems_differ_by_nothing_and_surely() -> None:
    equal = estimate_differences({"nq": np.zeros(5), "world": np.zeros(1)})
    assert all(one == Estimate(0.0, 0.0, 0.0) for one in equal.values())


def test_a_mean_over_sets_of_which_one_is_flat_is_as_wide_as_both_together() -> None:
    scattered, flat = np.tile([1.0, -1.0, 0.0, 0.5], 25), np.ones(4)
    found = estimate_differences({"a": scattered, "b": flat})
    below = np.hypot(found["a"].value - found["a"].low, found["b"].value - found["b"].low) / 2
    assert found["macro"].low == pytest.approx(found["macro"].value - below)
    assert found["b"].low < 1.0 == found["b"].high


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12), st.integers(1, 5))
def test_differences_that_scatter_are_as_any_mean_and_all_stay_within_one(values: list[float], again: int) -> None:
    values_Q = np.array(values * again)
    found = estimate_differences({"nq": values_Q})["nq"]
    assert -1 <= found.low <= found.value + 1e-12 and found.value <= found.high + 1e-12 <= 1 + 2e-12
    if np.ptp(values_Q) > 1e-9:
        assert found == estimate_means({"nq": values_Q})["nq"]
