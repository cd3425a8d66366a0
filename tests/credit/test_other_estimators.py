"""Distillation, generalised advantage estimation, constant and none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from credit_factories import earned, floats, sequence
from hypothesis import given
from hypothesis import strategies as st

from searchparty.credit.estimators.base import Sample
from searchparty.credit.estimators.distillation import Distillation
from searchparty.credit.estimators.fixed import Constant, Unsupervised
from searchparty.credit.estimators.gae import BLOCK, GeneralisedAdvantage, generalised_advantages


def test_distillation_is_the_scaled_log_ratio_at_trainable_tokens_and_0_elsewhere() -> None:
    one = Sample(sequence([0, 1, 1, 0, 1], [0, -2.0, -1.0, 0, -0.5]), earned(0), floats([9, -1.0, -3.0, 9, -0.5]))
    (found,) = Distillation(coefficient=0.01).estimate([one]).advantages
    assert found.tolist() == pytest.approx([0, 0.01, -0.02, 0, 0])


def test_distillation_uses_the_papers_coefficient_by_default() -> None:
    assert Distillation().coefficient == 0.01


def test_distillation_ignores_rewards_and_groups() -> None:
    one = Sample(sequence([1, 1], [-1.0, -1.0]), earned(-1), floats([-0.5, -2.0]))
    richer = replace(one, reward=earned(1))
    alone = Distillation().estimate([one]).advantages[0]
    beside = Distillation().estimate([richer, one]).advantages
    assert alone.tolist() == beside[0].tolist() == beside[1].tolist()
    assert Distillation().estimate([one]).groups is None


def test_what_a_teacher_did_not_score_teaches_nothing() -> None:
    (found,) = Distillation().estimate([Sample(sequence([1, 1], [-1.0, -2.0]), earned(1))]).advantages
    assert found.tolist() == [0, 0]


def test_a_generalised_advantage_worked_by_hand() -> None:
    # Tokens: prompt, two actions, an observation, one action. γ = 0.5, λ = 0.5; reward 1 at the last token.
    one = Sample(sequence([0, 1, 1, 0, 1]), earned(1), values_T=floats([9, 0.2, 0.4, -9, 0.6]))
    # δ = 0.5·0.4 − 0.2 = 0;  0.5·0.6 − 0.4 = −0.1;  1 − 0.6 = 0.4
    # A = 0 + 0.25·0 = 0;      −0.1 + 0.25·0.4 = 0;   0.4
    estimates = GeneralisedAdvantage(discount=0.5, trace_decay=0.5).estimate([one])
    assert estimates.advantages[0].tolist() == pytest.approx([0, 0, 0, 0, 0.4], abs=1e-7)
    assert estimates.returns is not None
    assert estimates.returns[0].tolist() == pytest.approx([0, 0.2, 0.4, 0, 1.0])


def test_without_discount_every_token_is_worth_the_reward_less_its_value() -> None:
    one = Sample(sequence([1, 0, 1, 1]), earned(0.7), values_T=floats([0.1, 5, 0.2, 0.3]))
    estimates = GeneralisedAdvantage().estimate([one])
    assert estimates.advantages[0].tolist() == pytest.approx([0.6, 0, 0.5, 0.4])
    assert estimates.returns is not None
    assert estimates.returns[0].tolist() == pytest.approx([0.7, 0, 0.7, 0.7])


def test_a_coefficient_scales_advantages_and_not_the_critics_targets() -> None:
    one = Sample(sequence([1]), earned(1), values_T=floats([0.5]))
    estimates = GeneralisedAdvantage(coefficient=2.0).estimate([one])
    assert estimates.returns is not None
    assert (estimates.advantages[0][0], estimates.returns[0][0]) == (1.0, 1.0)


def test_generalised_advantages_need_a_critic() -> None:
    with pytest.raises(ValueError, match="the critic gave no values"):
        GeneralisedAdvantage().estimate([Sample(sequence([1]), earned(1))])


def slow_advantages(rewards: list[float], values: list[float], discount: float, trace_decay: float) -> list[float]:
    """The definition as a double sum."""
    after = [*values, 0.0][1:]
    errors = [reward + discount * later - now for reward, now, later in zip(rewards, values, after, strict=True)]
    return [
        sum((discount * trace_decay) ** (later - now) * errors[later] for later in range(now, len(errors)))
        for now in range(len(errors))
    ]


pairs = st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), max_size=9)


@given(st.lists(pairs, max_size=6), st.sampled_from([0.0, 0.5, 0.99, 1.0]), st.sampled_from([0.0, 0.9, 1.0]))
def test_the_recursion_equals_the_definition(batch: list[list[tuple[float, float]]], discount: float, decay: float) -> None:
    rewards = [[reward for reward, _ in one] for one in batch]
    values = [[value for _, value in one] for one in batch]
    found = generalised_advantages([np.array(one) for one in rewards], [np.array(one) for one in values], discount, decay)
    for number, one in enumerate(found):
        assert one.tolist() == pytest.approx(slow_advantages(rewards[number], values[number], discount, decay), abs=1e-9)


def test_more_sequences_than_fit_one_block_come_back_in_order() -> None:
    lengths = [1 + number * 7 % 5 for number in range(BLOCK + 10)]
    values = [np.full(length, float(number)) for number, length in enumerate(lengths)]
    found = generalised_advantages([np.zeros(length) for length in lengths], values, 1.0, 1.0)
    assert [one.tolist() for one in found] == [[-float(number)] * length for number, length in enumerate(lengths)]


def test_a_constant_is_the_same_at_every_trainable_token() -> None:
    assert Constant().estimate([Sample(sequence([0, 1, 1]), earned(0))]).advantages[0].tolist() == [0, 1, 1]
    assert Constant(coefficient=-0.5).estimate([Sample(sequence([1, 0]), earned(0))]).advantages[0].tolist() == [-0.5, 0]


def test_an_unsupervised_role_does_not_learn() -> None:
    assert not Unsupervised.learns
    assert Unsupervised().estimate([Sample(sequence([1, 1]), earned(1))]).advantages[0].tolist() == [0, 0]
