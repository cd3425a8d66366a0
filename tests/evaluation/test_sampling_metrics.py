"""Rates over repeated runs, against cases worked by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from searchparty.evaluation.sampling_metrics import (
    SamplingRates,
    all_correct_by_question,
    any_correct_by_question,
    average_by_question,
    samples_array,
    sampling_rates,
    summarise_samples,
    unbiased_pass_by_question,
)


def runs(*rows: str) -> NDArray[np.float64]:
    """One word of 0 and 1 per question: `"0110"` is a question answered by the second and third of four runs."""
    return samples_array([[int(sample) for sample in row] for row in rows])


def test_the_three_rates_of_a_case_worked_by_hand() -> None:
    # 4 + 0 + 1 + 2 right of 16 samples; three questions right at least once, one every time.
    assert sampling_rates(runs("1111", "0000", "0100", "0110")) == SamplingRates(
        questions=4, samples=4, average=7 / 16, any_correct=3 / 4, all_correct=1 / 4
    )


def test_macro_weighs_datasets_equally_and_micro_weighs_questions_equally() -> None:
    summary = summarise_samples({"large": runs("11", "11", "10"), "small": runs("00")})
    assert summary.datasets["large"].average == pytest.approx(5 / 6)
    assert summary.datasets["small"].average == 0.0
    assert summary.macro.average == pytest.approx(5 / 12)
    assert summary.micro.average == pytest.approx(5 / 8)
    assert (summary.macro.any_correct, summary.micro.any_correct) == (0.5, 0.75)
    assert (summary.macro.all_correct, summary.micro.all_correct) == pytest.approx((1 / 3, 1 / 2))
    assert summary.macro.questions == summary.micro.questions == 4


def test_graded_scores_have_an_average_but_no_pass_rate() -> None:
    f1_scores = samples_array([[0.5, 1.0], [0.0, 0.25]])
    assert average_by_question(f1_scores).tolist() == [0.75, 0.125]
    for rate in (any_correct_by_question, all_correct_by_question, lambda scores: unbiased_pass_by_question(scores, 1)):
        with pytest.raises(ValueError, match="graded"):
            rate(f1_scores)


def test_questions_with_different_numbers_of_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="from 1 to 2"):
        samples_array([[1, 0], [1]])


@pytest.mark.parametrize("scores", [[], [[]], [[], []]])
def test_no_question_or_no_sample_is_refused(scores: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        samples_array(scores)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_score_outside_0_to_1_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        samples_array([[0.0, value]])


def test_datasets_with_different_numbers_of_samples_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="nq 1, musique 2"):
        summarise_samples({"nq": runs("1"), "musique": runs("10")})
    with pytest.raises(ValueError, match="one dataset"):
        summarise_samples({})


def test_unbiased_pass_needs_k_between_1_and_the_samples_there_are() -> None:
    for k in (0, 3):
        with pytest.raises(ValueError, match="from 1 to the 2 samples"):
            unbiased_pass_by_question(runs("10"), k)


ROWS = st.integers(1, 6).flatmap(
    lambda samples: st.lists(st.lists(st.integers(0, 1), min_size=samples, max_size=samples), min_size=1, max_size=5)
)


@given(ROWS, st.data())
def test_unbiased_pass_is_the_share_of_all_choices_of_k_runs_that_hold_a_right_one(
    rows: list[list[int]], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(rows[0])))
    expected = [np.mean([max(chosen) for chosen in combinations(row, k)]) for row in rows]
    assert unbiased_pass_by_question(samples_array(rows), k) == pytest.approx(expected)


@given(ROWS)
def test_unbiased_pass_at_1_is_the_average_and_at_all_samples_the_plain_pass(rows: list[list[int]]) -> None:
    correct_QS = samples_array(rows)
    assert unbiased_pass_by_question(correct_QS, 1) == pytest.approx(average_by_question(correct_QS))
    assert unbiased_pass_by_question(correct_QS, len(rows[0])) == pytest.approx(any_correct_by_question(correct_QS))


@given(ROWS)
def test_all_correct_never_exceeds_the_average_nor_the_average_any_correct(rows: list[list[int]]) -> None:
    rates = sampling_rates(samples_array(rows))
    assert rates.all_correct <= rates.average <= rates.any_correct
