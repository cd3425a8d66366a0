"""Group-relative advantages: cases by hand, and what must hold for any rewards."""

from __future__ import annotations

import numpy as np
import pytest
from credit_factories import Sample, earned, estimate, sample
from hypothesis import assume, given
from hypothesis import strategies as st

from searchparty.credit.estimators.base import GroupCounts
from searchparty.credit.estimators.group_relative import GroupRelative

EPISODES, CANDIDATES = GroupRelative(compare="episodes"), GroupRelative(compare="candidates")
PLAIN = GroupRelative(compare="episodes", normalise=False)


def advantages(estimator: GroupRelative, samples: list[Sample]) -> list[float]:
    """The one advantage of each sample."""
    return [float(one[0]) for one in estimate(estimator, samples).advantages]


def attempts(*rewards: float) -> list[Sample]:
    """One leader per episode of one question."""
    return [sample(reward, sample=number, agent="leader.1") for number, reward in enumerate(rewards)]


def test_rewards_are_centred_and_divided_by_their_sample_deviation() -> None:
    # mean 0.4, squared differences 0.36 · 2 + 0.16 · 3 = 1.2, over 4: deviation √0.3
    expected = np.array([0.6, 0.6, -0.4, -0.4, -0.4]) / np.sqrt(0.3)
    assert advantages(EPISODES, attempts(1, 1, 0, 0, 0)) == pytest.approx(expected, rel=1e-6)


def test_without_normalisation_rewards_are_only_centred_and_the_coefficient_scales() -> None:
    assert advantages(PLAIN, attempts(1, 1, 0, 0, 0)) == pytest.approx([0.6, 0.6, -0.4, -0.4, -0.4])
    doubled = GroupRelative(compare="episodes", normalise=False, coefficient=2.0)
    assert advantages(doubled, attempts(1, 0)) == pytest.approx([1.0, -1.0])


def test_every_trainable_token_of_a_sequence_gets_the_same_advantage() -> None:
    samples = [sample(1, 3, sample=0), sample(0, 2, sample=1)]
    first, second = estimate(PLAIN, samples).advantages
    assert first.tolist() == [0.5, 0.5, 0.5]
    assert second.tolist() == [-0.5, -0.5]


def test_candidates_are_compared_within_their_call_and_episode_alone() -> None:
    first = [sample(reward, agent="answerer.1", candidate=number) for number, reward in enumerate([1, 0])]
    second = [sample(reward, sample=1, agent="answerer.1", candidate=number) for number, reward in enumerate([1, 1])]
    root = 1 / np.sqrt(2)
    assert advantages(CANDIDATES, first + second) == pytest.approx([root, -root, 0, 0])
    assert estimate(CANDIDATES, first + second).groups == GroupCounts(2, 0, 1)


def test_an_episode_has_one_vote_however_many_agents_it_had() -> None:
    chatty = [sample(1, sample=0, agent=f"searcher.{number}") for number in range(1, 4)]
    terse = [sample(0, sample=1, agent="searcher.1")]
    assert advantages(PLAIN, chatty + terse) == pytest.approx([0.5, 0.5, 0.5, -0.5])
    root = 1 / np.sqrt(2)
    assert advantages(EPISODES, chatty + terse) == pytest.approx([root, root, root, -root])


def test_agents_of_one_episode_may_differ_and_share_its_vote() -> None:
    samples = [sample(1, sample=0, agent="searcher.1"), sample(0, sample=0, agent="searcher.2"), sample(0, sample=1)]
    # votes 0.5 and 0: mean 0.25
    assert advantages(PLAIN, samples) == pytest.approx([0.75, -0.25, -0.25])


def test_agents_of_a_single_episode_are_not_compared_with_each_other() -> None:
    samples = [sample(1, agent="searcher.1"), sample(0, agent="searcher.2")]
    assert advantages(EPISODES, samples) == [0, 0]
    assert estimate(EPISODES, samples).groups == GroupCounts(1, 1, 0)


def test_penalties_count_where_outcomes_differ_and_never_by_themselves() -> None:
    differing = [sample(earned(reward - cost, penalty=cost), sample=n) for n, reward, cost in [(0, 1, 0.001), (1, 0, 0.003)]]
    equal = [sample(earned(1 - cost, penalty=cost), sample=n) for n, cost in [(0, 0.001), (1, 0.003)]]
    assert advantages(EPISODES, differing) == pytest.approx([0.501 / np.sqrt(0.5), -0.501 / np.sqrt(0.5)], rel=1e-6)
    assert advantages(EPISODES, equal) == [0, 0]
    assert estimate(EPISODES, equal).groups == GroupCounts(1, 0, 1)


def test_rounding_is_not_taken_for_a_difference() -> None:
    assert advantages(EPISODES, attempts(0.1 + 0.2, 0.3)) == [0, 0]


def test_nothing_to_compare_gives_nothing() -> None:
    assert estimate(EPISODES, []).groups == GroupCounts(0, 0, 0)


rewards_lists = st.lists(st.integers(-8, 8).map(lambda eighths: eighths / 8), min_size=1, max_size=8)


@given(rewards_lists, st.sampled_from([-3.0, 0.25, 10.0]))
def test_a_constant_added_to_all_rewards_changes_nothing(rewards: list[float], shift: float) -> None:
    for estimator in (EPISODES, PLAIN):
        moved = advantages(estimator, attempts(*(reward + shift for reward in rewards)))
        assert moved == pytest.approx(advantages(estimator, attempts(*rewards)), abs=1e-5)


@given(rewards_lists, st.sampled_from([0.125, 2.0, 40.0]))
def test_scaling_rewards_scales_plain_advantages_and_leaves_normalised_ones(rewards: list[float], factor: float) -> None:
    scaled = attempts(*(reward * factor for reward in rewards))
    assert advantages(EPISODES, scaled) == pytest.approx(advantages(EPISODES, attempts(*rewards)), abs=1e-5)
    expected = [factor * one for one in advantages(PLAIN, attempts(*rewards))]
    assert advantages(PLAIN, scaled) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@given(rewards_lists)
def test_normalised_advantages_of_a_group_have_mean_0_and_deviation_1(rewards: list[float]) -> None:
    assume(len(set(rewards)) > 1)
    found = advantages(EPISODES, attempts(*rewards))
    assert np.mean(found) == pytest.approx(0, abs=1e-5)
    assert np.std(found, ddof=1) == pytest.approx(1, rel=1e-5)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0])), max_size=20), st.randoms())
def test_the_order_of_samples_does_not_matter(members: list[tuple[int, int, float]], random: object) -> None:
    samples = [
        sample(reward, question=f"q/{question}", sample=number, agent=f"searcher.{place}")
        for place, (question, number, reward) in enumerate(members)
    ]
    shuffled = list(samples)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    by_key = {one.sequence.key: value for one, value in zip(samples, advantages(EPISODES, samples), strict=True)}
    again = {one.sequence.key: value for one, value in zip(shuffled, advantages(EPISODES, shuffled), strict=True)}
    assert again == pytest.approx(by_key, abs=1e-6)
    assert estimate(EPISODES, samples).groups == estimate(EPISODES, shuffled).groups
