"""Credit for PPO with a critic: rewards of single tokens, whitening, and what a planner's turn is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from credit_factories import RIGHT, Earned, Sample, chained, earned, estimate, floats, judge, sequence
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from searchparty.credit.assign import assign_credit
from searchparty.credit.estimators.gae import GeneralisedAdvantage
from searchparty.credit.gathering import sequences_to_score
from searchparty.credit.plan import CreditPlan
from searchparty.credit.rewards import reference_penalty
from searchparty.credit.sequences import token_sequences

numbers = st.floats(-3, 3, allow_nan=False, width=32)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[float], list[float], float]:
    """Where tokens are trainable, the critic's values and the penalties everywhere, and the sequence's reward."""
    trainable = draw(st.lists(st.integers(0, 1), min_size=1, max_size=12).filter(any))
    same = st.lists(numbers, min_size=len(trainable), max_size=len(trainable))
    return trainable, draw(same), draw(same), draw(numbers)


def plain(rewards: list[float], values: list[float], discount: float, decay: float) -> list[float]:
    """Equation (16) of Schulman et al. as it is written: a sum over all later temporal differences."""
    ahead = [*values[1:], 0.0]
    deltas = [reward + discount * later - now for reward, later, now in zip(rewards, ahead, values, strict=True)]
    return [sum((discount * decay) ** (k - t) * delta for k, delta in enumerate(deltas) if k >= t) for t in range(len(deltas))]


@given(cases(), st.floats(0, 1), st.floats(0, 1))
def test_gae_with_rewards_of_tokens_equals_the_sum_over_temporal_differences(case, discount, decay) -> None:
    trainable, values, penalties, reward = case
    one = sequence(trainable)
    sample = Sample(one, earned(reward), values_T=floats(values), reference_penalty_T=floats(penalties))
    found = estimate(GeneralisedAdvantage(discount=discount, trace_decay=decay), [sample])
    kept = [place for place, flag in enumerate(trainable) if flag]
    rewards = [-np.float32(penalties[place]) for place in kept]
    rewards[-1] += reward
    expected = plain([float(one) for one in rewards], [values[place] for place in kept], discount, decay)
    assert found.advantages[0][kept] == pytest.approx(expected, abs=1e-4)
    assert found.returns is not None
    assert found.returns[0][kept] == pytest.approx(np.array(expected) + np.array(values)[kept], abs=1e-4)


@given(cases(), st.lists(numbers, min_size=12, max_size=12))
def test_contract_7_nothing_at_an_observation_token_reaches_an_advantage(case, noise) -> None:
    trainable, values, penalties, reward = case
    one = sequence(trainable)
    elsewhere = np.array(trainable) == 0

    def estimated(values: list[float], penalties: list[float]):
        sample = Sample(one, earned(reward), values_T=floats(values), reference_penalty_T=floats(penalties))
        return estimate(GeneralisedAdvantage(discount=0.9, trace_decay=0.8, whitening="tokens"), [sample])

    changed = np.array(noise[: len(trainable)])
    first = estimated(values, penalties)
    second = estimated(np.where(elsewhere, changed, values).tolist(), np.where(elsewhere, changed, penalties).tolist())
    assert np.array_equal(first.advantages[0], second.advantages[0])
    assert np.array_equal(first.returns[0], second.returns[0])
    assert not first.advantages[0][elsewhere].any()


def test_whitened_advantages_have_mean_0_and_deviation_1_over_tokens_and_returns_stay() -> None:
    samples = [
        Sample(sequence([1, 0, 1]), earned(1.0), values_T=floats([0.5, 9, 0.25])),
        Sample(sequence([1, 1, 1], sample=1), earned(-1.0), values_T=floats([0.0, 0.1, 0.2])),
    ]
    plain_, white = estimate(GeneralisedAdvantage(), samples), estimate(GeneralisedAdvantage(whitening="tokens"), samples)
    kept = [np.flatnonzero(one.sequence.trainable_T) for one in samples]
    every = np.concatenate([array[place] for array, place in zip(white.advantages, kept, strict=True)])
    assert every.mean() == pytest.approx(0, abs=1e-6)
    assert every.std() == pytest.approx(1, abs=1e-6)
    assert all(np.array_equal(a, b) for a, b in zip(plain_.returns, white.returns, strict=True))


def test_equal_advantages_are_whitened_to_nothing() -> None:
    samples = [Sample(sequence([1, 1], sample=n), earned(0.3), values_T=floats([0.3, 0.3])) for n in range(2)]
    found = estimate(GeneralisedAdvantage(whitening="tokens"), samples)
    assert not any(array.any() for array in found.advantages)


def test_whitening_does_not_depend_on_the_order_of_samples() -> None:
    draw = np.random.default_rng(0)
    samples = [
        Sample(sequence([1] * 7, sample=n), earned(draw.normal()), values_T=floats(draw.normal(size=7))) for n in range(20)
    ]
    forwards = estimate(GeneralisedAdvantage(whitening="tokens"), samples).advantages
    backwards = estimate(GeneralisedAdvantage(whitening="tokens"), samples[::-1]).advantages
    assert all(np.array_equal(a, b) for a, b in zip(forwards, backwards[::-1], strict=True))


def test_each_token_pays_for_its_own_distance_from_the_reference() -> None:
    one = sequence([1, 0, 1], [-1.0, -9.0, -2.0])
    penalty_N = reference_penalty(floats([-1.0, -2.0]), floats([-1.5, -1.0]), 0.1)
    assert penalty_N == pytest.approx([0.1 * 0.5, 0.1 * -1.0])
    penalty_T = floats([penalty_N[0], 0.0, penalty_N[1]])
    sample = Sample(one, Earned(1.0, 0.0, float(penalty_T.sum())), values_T=floats([0, 0, 0]), reference_penalty_T=penalty_T)
    found = estimate(GeneralisedAdvantage(), [sample])
    assert found.advantages[0] == pytest.approx([1.0 + 0.1 - 0.05, 0.0, 1.0 + 0.1])


def test_the_reference_is_asked_only_about_roles_that_are_held_near_it_and_its_share_is_shown() -> None:
    plan = CreditPlan.model_validate(
        {
            "roles": {
                "searcher": {"estimator": "gae", "rewards": {"f1": 1.0, "reference_kl": 0.5}},
                "answerer": {"estimator": "none"},
            }
        }
    )
    episode = chained(answers=[RIGHT])
    asked = sequences_to_score([episode], plan, lambda role: role.needs_reference)
    assert {one.role for one in asked} == {"searcher"}
    reference = {one.key: np.where(one.trainable_T, -2.0, 0).astype(np.float32) for one in asked}
    values = {one.key: np.zeros(len(one.ids_T), np.float32) for one in token_sequences(episode)}
    credit = assign_credit([episode], plan, replace(judge(episode), reference_logprobs=reference, values=values))
    divergence = sum(float((one.old_logprobs_T[one.trainable_T] + 2.0).sum()) for one in asked)
    shown = credit.roles["searcher"].rewards
    assert shown["reference_divergence"] == pytest.approx(divergence)
    assert shown["reference_penalty"] == pytest.approx(0.5 * divergence)
    assert shown["total"] == pytest.approx(1.0 - 0.5 * divergence)
    signal = credit.signals[0]
    assert signal.advantages_T[signal.trainable_T][0] == pytest.approx(1.0 - 0.5 * divergence, abs=1e-4)
    assert signal.advantages_T[signal.trainable_T][-1] == pytest.approx(
        1.0 - 0.5 * (float(asked[0].old_logprobs_T[asked[0].trainable_T][-1]) + 2.0), abs=1e-5
    )


def test_f1_is_shared_by_all_roles_and_an_answerers_candidates_earn_their_own() -> None:
    plan = CreditPlan.model_validate(
        {
            "roles": {
                "searcher": {"estimator": "gae", "rewards": {"f1": 1.0}},
                "answerer": {"estimator": {"name": "gae"}, "rewards": {"f1": 1.0, "invalid_format": None}},
            }
        }
    )
    episode = chained(answers=["<answer>Paris France</answer>", RIGHT, "<answer>Lyon</answer>"])
    values = {one.key: np.zeros(len(one.ids_T), np.float32) for one in token_sequences(episode)}
    credit = assign_credit([episode], plan, replace(judge(episode), values=values))
    last = [float(one.advantages_T[one.trainable_T][-1]) for one in credit.signals]
    assert last == pytest.approx([2 / 3, 2 / 3, 1.0, 0.0])


@pytest.mark.parametrize("key", ["planner_cost", "invalid_workflow", "reference_kl"])
def test_what_is_subtracted_cannot_be_negative(key: str) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        CreditPlan.model_validate({"roles": {"planner": {"estimator": "gae", "rewards": {"f1": 1.0, key: -0.1}}}})
