"""Distillation, generalised advantage estimation, constant and none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from credit_factories import Sample, earned, estimate, floats, sequence
from hypothesis import given
from hypothesis import strategies as st

from searchparty.credit.estimators.distillation import Distillation
from searchparty.credit.estimators.fixed import Constant, Unsupervised
from searchparty.credit.estimators.gae import GeneralisedAdvantage, generalised_advantages


def test_distillation_is_the_scaled_log_ratio_at_trainable_tokens_and_0_elsewhere() -> None:
    one = Sample(sequence([0, 1, 1, 0, 1], [0, -2.0, -1.0, 0, -0.5]), earned(0), floats([9, -1.0, -3.0, 9, -0.5]))
    (found,) = estimate(Distillation(coefficient=0.01), [one]).advantages
    assert found.tolist() == pytest.approx([0, 0.01, -0.02, 0, 0])


def test_distillation_uses_the_papers_coefficient_by_default() -> None:
    assert Distillation().coefficient == 0.01


def test_distillation_ignores_rewards_and_groups() -> None:
    one = Sample(sequence([1, 1], [-1.0, -1.0]), earned(-1), floats([-0.5, -2.0]))
    richer = replace(one, reward=earned(1))
    alone = estimate(Distillation(), [one]).advantages[0]
    beside = estimate(Distillation(), [richer, one]).advantages
    assert alone.tolist() == beside[0].tolist() == beside[1].tolist()
    assert estimate(Distillation(), [one]).groups is None


def test_what_a_teacher_did_not_score_teaches_nothing() -> None:
    (found,) = estimate(Distillation(), [Sample(sequence([1, 1], [-1.0, -2.0]), earned(1))]).advantages
    assert found.tolist() == [0, 0]


def test_a_generalised_advantage_worked_by_hand() -> None:
    # Tokens: prompt, two actions, an observation, one action. γ = 0.5, λ = 0.5; reward 1 at the last token.
    one = Sample(sequence([0, 1, 1, 0, 1]), earned(1), values_T=floats([9, 0.2, 0.4, -9, 0.6]))
    # δ = 0.5·0.4 − 0.2 = 0;  0.5·0.6 − 0.4 = −0.1;  1 − 0.6 = 0.4
    # A = 0 + 0.25·0 = 0;      −0.1 + 0.25·0.4 = 0;   0.4
    estimates = estimate(GeneralisedAdvantage(discount=0.5, trace_decay=0.5), [one])
    assert estimates.advantages[0].tolist() == pytest.approx([0, 0, 0, 0, 0.4], abs=1e-7)
    assert estimates.returns is not None
    assert estimates.returns[0].tolist() == pytest.approx([0, 0.2, 0.4, 0, 1.0])


def test_without_discount_every_token_is_worth_the_reward_less_its_value() -> None:
    one = Sample(sequence([1, 0, 1, 1]), earned(0.7), values_T=floats([0.1, 5, 0.2, 0.3]))
    estimates = estimate(GeneralisedAdvantage(), [one])
    assert estimates.advantages[0].tolist() == pytest.approx([0.6, 0, 0.5, 0.4])
    assert estimates.returns is not None
    assert estimates.returns[0].tolist() == pytest.approx([0.7, 0, 0.7, 0.7])


def test_a_coefficient_scales_advantages_and_not_the_critics_targets() -> None:
    one = Sample(sequence([1]), earned(1), values_T=floats([0.5]))
    estimates = estimate(GeneralisedAdvantage(coefficient=2.0), [one])
    assert estimates.returns is not None
    assert (estimates.advantages[0][0], estimates.returns[0][0]) == (1.0, 1.0)


def test_generalised_advantages_need_a_critic() -> None:
    with pytest.raises(ValueError, match="the critic gave no values"):
        estimate(GeneralisedAdvantage(), [Sample(sequence([1]), earned(1))])


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
    found = side_by_side(batch, discount, decay)
    expected = [slow_advantages([reward for reward, _ in one], [value for _, value in one], discount, decay) for one in batch]
    assert found == pytest.approx([advantage for one in expected for advantage in one], abs=1e-9)


@given(st.lists(pairs, max_size=6), st.floats(0, 1), st.floats(0, 1))
def test_beside_others_a_sequence_gets_to_the_last_bit_what_it_gets_alone(
    batch: list[list[tuple[float, float]]], discount: float, decay: float
) -> None:
    alone = [backwards(one, discount, decay) for one in batch]
    assert side_by_side(batch, discount, decay) == [advantage for one in alone for advantage in one]


def side_by_side(batch: list[list[tuple[float, float]]], discount: float, decay: float) -> list[float]:
    """Of sequences of rewards and values, all at once."""
    reward_and_value_N = np.array([pair for one in batch for pair in one]).reshape(-1, 2)
    tokens_S = np.array([len(one) for one in batch], dtype=np.intp)
    return generalised_advantages(*reward_and_value_N.T, tokens_S, discount, decay).tolist()


def backwards(one: list[tuple[float, float]], discount: float, decay: float) -> list[float]:
    """The recursion for one sequence, in plain numbers."""
    advantages, value_after, advantage_after = [], 0.0, 0.0
    for reward, value in reversed(one):
        advantage_after = reward + discount * value_after - value + discount * decay * advantage_after
        advantages.append(advantage_after)
        value_after = value
    return advantages[::-1]


def test_a_constant_is_the_same_at_every_trainable_token() -> None:
    assert estimate(Constant(), [Sample(sequence([0, 1, 1]), earned(0))]).advantages[0].tolist() == [0, 1, 1]
    assert estimate(Constant(coefficient=-0.5), [Sample(sequence([1, 0]), earned(0))]).advantages[0].tolist() == [-0.5, 0]


def test_an_unsupervised_role_does_not_learn() -> None:
    assert not Unsupervised.learns
    assert estimate(Unsupervised(), [Sample(sequence([1, 1]), earned(1))]).advantages[0].tolist() == [0, 0]
