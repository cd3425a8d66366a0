"""Contracts 5, 6, 7 and 9 as far as credit keeps them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from credit_factories import RIGHT, WRONG, Sample, chained, earned, estimate, floats, hierarchical, judge, sequence
from hypothesis import given
from hypothesis import strategies as st

from searchparty.credit.assign import assign_credit
from searchparty.credit.estimators.base import GroupCounts
from searchparty.credit.estimators.gae import GeneralisedAdvantage
from searchparty.credit.findings import FindingKind
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.plans import CHAINED_RL, MULTIAGENT_OPD, SEARCHER_ON_OUTCOME
from searchparty.credit.reductions import ReductionScope
from searchparty.credit.result import CreditResult
from searchparty.credit.sequences import token_sequences
from searchparty.episodes.types import Episode, StopReason
from searchparty.errors import Failure, FailureKind

FAILED = Failure("model", FailureKind.TIMEOUT, "no reply within 1 s")


# Contract 5: groups by explicit ids.


def test_contract_5_episodes_of_two_questions_with_one_text_are_never_compared() -> None:
    episodes = [chained(0, [RIGHT], "q1"), chained(0, [WRONG], "q2")]
    result = assign_credit(episodes, CHAINED_RL, judge(*episodes))
    assert {one.question for one in episodes} == {"What is the capital of France?"}
    assert not any(one.advantages_T.any() for one in result.signals)
    assert result.roles["searcher"].groups == GroupCounts(groups=2, singletons=2, equal=0)


def test_contract_5_candidates_of_two_episodes_are_never_compared() -> None:
    episodes = [chained(0, [RIGHT, RIGHT]), chained(1, [WRONG, WRONG])]
    result = assign_credit(episodes, CHAINED_RL, judge(*episodes))
    assert not any(one.advantages_T.any() for one in result.signals if one.role == "answerer")
    assert result.roles["answerer"].groups == GroupCounts(groups=2, singletons=0, equal=2)
    assert all(one.advantages_T.any() for one in result.signals if one.role == "searcher")


def test_contract_5_groups_of_uneven_size_need_no_copies() -> None:
    first = [chained(0, [RIGHT], "q1"), chained(1, [WRONG], "q1"), chained(2, [WRONG], "q1")]
    episodes = [*first, chained(0, [RIGHT], "q2"), chained(1, [WRONG], "q2")]
    result = assign_credit(episodes, CHAINED_RL, judge(*episodes))
    found = {one.key: one.advantages_T[one.trainable_T][0] for one in result.signals if one.role == "searcher"}
    assert len(found) == 5
    by_question = [[value for key, value in found.items() if key.question_key == name] for name in ("nq/q1", "nq/q2")]
    third, half = 1 / np.sqrt(3), 1 / np.sqrt(2)
    assert by_question[0] == pytest.approx([2 * third, -third, -third], rel=1e-5)
    assert by_question[1] == pytest.approx([half, -half], rel=1e-5)


# Contract 6: one vote per episode.


def _votes(result: CreditResult) -> dict[tuple[str, int], float]:
    votes: dict[tuple[str, int], float] = {}
    for one in result.signals:
        key = (one.key.question_key, one.key.sample)
        votes[key] = votes.get(key, 0.0) + float(one.weights_T.sum())
    return votes


def _chatty_and_terse() -> list[Episode]:
    chatter = ["<task>a</task><task>b</task><task>c</task>", "<task>d</task>", "<select>1</select>"]
    return [hierarchical(0, leader=chatter, searcher=["<search>q</search>"] * 3 + ["<report>r</report>"]), hierarchical(1)]


def test_contract_6_a_chatty_episode_weighs_no_more_than_a_terse_one() -> None:
    episodes = _chatty_and_terse()
    sizes = [sum(one.trainable_T.sum() for one in token_sequences(episode)) for episode in episodes]
    assert sizes[0] > 1.3 * sizes[1]
    result = assign_credit(episodes, MULTIAGENT_OPD, judge(*episodes, teacher=0.1))
    assert _votes(result) == pytest.approx({("nq/q1", 0): 0.5, ("nq/q1", 1): 0.5})


@pytest.mark.parametrize(("scope", "total"), [("all", 1), ("role", 3)])
def test_contract_6_weights_sum_to_what_the_reduction_says(scope: ReductionScope, total: int) -> None:
    episodes = _chatty_and_terse()
    for name in ("token-mean", "sequence-mean", "episode-mean"):
        plan = MULTIAGENT_OPD.model_copy(update={"reduction": name, "over": scope})
        signals = assign_credit(episodes, plan, judge(*episodes, teacher=0.1)).signals
        assert sum(float(one.weights_T.sum()) for one in signals) == pytest.approx(total, rel=1e-5)


def test_contract_6_a_chatty_episode_moves_the_groups_mean_no_more_than_a_terse_one() -> None:
    chatty, wrong = _chatty_and_terse()[0], hierarchical(1, [WRONG, WRONG])
    result = assign_credit([chatty, wrong], SEARCHER_ON_OUTCOME, judge(chatty, wrong, teacher=0.0))
    found = {one.key.sample: one.advantages_T[one.trainable_T][0] for one in result.signals if one.role == "searcher"}
    assert found == pytest.approx({0: 1 / np.sqrt(2), 1: -1 / np.sqrt(2)}, rel=1e-5)
    assert result.roles["searcher"].sequences == 5


# Contract 7: GAE over trainable tokens only.

tokens = st.lists(st.tuples(st.booleans(), st.floats(-3, 3, width=32), st.floats(-1e6, 1e6, width=32)), min_size=1, max_size=30)


@given(tokens, st.sampled_from([0.5, 1.0]), st.sampled_from([0.0, 0.95, 1.0]), st.sampled_from([-1.0, 0.3, 1.0]))
def test_contract_7_values_at_observation_tokens_cannot_leak(
    history: list[tuple[bool, float, float]], discount: float, trace_decay: float, reward: float
) -> None:
    trainable = [int(sampled) for sampled, _, _ in history]
    clean = Sample(sequence(trainable), earned(reward), values_T=floats([value for _, value, _ in history]))
    spoiled_T = floats([value if sampled else noise for sampled, value, noise in history])
    estimator = GeneralisedAdvantage(discount=discount, trace_decay=trace_decay)
    one, other = (estimate(estimator, [made]) for made in (clean, replace(clean, values_T=spoiled_T)))
    assert one.advantages[0].tolist() == other.advantages[0].tolist()
    assert one.returns is not None and other.returns is not None
    assert one.returns[0].tolist() == other.returns[0].tolist()
    assert not np.any(one.advantages[0][~clean.sequence.trainable_T])


@given(tokens)
def test_contract_7_a_history_gives_what_its_sampled_tokens_alone_would_give(history: list[tuple[bool, float, float]]) -> None:
    trainable = [int(sampled) for sampled, _, _ in history]
    whole = Sample(sequence(trainable), earned(1), values_T=floats([value for _, value, _ in history]))
    kept = [value for sampled, value, _ in history if sampled]
    bare = Sample(sequence([1] * len(kept)), earned(1), values_T=floats(kept))
    estimator = GeneralisedAdvantage(discount=0.9, trace_decay=0.8)
    found = estimate(estimator, [whole]).advantages[0][whole.sequence.trainable_T]
    assert found.tolist() == estimate(estimator, [bare]).advantages[0].tolist()


# Contract 9: silence is an alarm.


def _kinds(result: CreditResult) -> list[tuple[FindingKind, str | None]]:
    return [(finding.kind, finding.role) for finding in result.findings]


def test_contract_9_a_batch_in_which_every_role_learns_raises_no_alarm() -> None:
    episodes = [hierarchical(0, [RIGHT, WRONG]), hierarchical(1, [WRONG, WRONG])]
    assert assign_credit(episodes, MULTIAGENT_OPD, judge(*episodes, teacher=0.1)).findings == []


def test_contract_9_a_role_with_zero_trainable_tokens_is_named() -> None:
    episodes = [chained(number, searcher=["no action"]) for number in (0, 1)]
    result = assign_credit(episodes, CHAINED_RL, judge(*episodes))
    assert (FindingKind.NO_TRAINABLE_TOKENS, "answerer") in _kinds(result)
    assert result.roles["answerer"].tokens == 0


def test_contract_9_a_distillation_step_with_zero_scored_tokens_is_named() -> None:
    episodes = [hierarchical(0, [RIGHT, WRONG]), hierarchical(1, [WRONG, WRONG])]
    result = assign_credit(episodes, MULTIAGENT_OPD, judge(*episodes))
    assert (FindingKind.NOTHING_SCORED, "searcher") in _kinds(result)
    assert (FindingKind.NOTHING_SCORED, "leader") in _kinds(result)
    assert result.roles["searcher"].scored_tokens == 0


def test_contract_9_a_teacher_that_left_sequences_out_is_named() -> None:
    episodes = [hierarchical(0, [RIGHT, WRONG]), hierarchical(1, [WRONG, WRONG])]
    evidence = judge(*episodes, teacher=0.1)
    some = {key: one for key, one in evidence.teacher_logprobs.items() if (key.agent, key.sample) != ("searcher.1", 1)}
    result = assign_credit(episodes, MULTIAGENT_OPD, replace(evidence, teacher_logprobs=some))
    assert _kinds(result) == [(FindingKind.PARTLY_SCORED, "searcher")]
    counts = result.roles["searcher"]
    assert counts.scored_tokens == counts.moving_tokens == counts.tokens / 2


@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_contract_9_a_log_probability_that_is_not_finite_is_named_and_not_learned_from(bad: float) -> None:
    episodes = [hierarchical(0, [RIGHT, WRONG]), hierarchical(1, [WRONG, WRONG])]
    evidence = judge(*episodes, teacher=0.1)
    span = episodes[1].transcript("searcher.1").last_turn()[0]
    span.logprobs = [bad, *(span.logprobs or [])[1:]]
    result = assign_credit(episodes, MULTIAGENT_OPD, evidence)
    (finding,) = result.findings
    assert (finding.kind, finding.role) == (FindingKind.NON_FINITE, "searcher")
    assert finding.key is not None
    assert "searcher: nq/q1, sample 1, searcher.1: log-probabilities of the sampling policy" in str(finding)
    assert finding.key not in [one.key for one in result.signals]
    assert result.roles["searcher"].sequences == 2


def test_contract_9_a_teacher_that_is_not_finite_is_named_and_not_learned_from() -> None:
    episodes = [hierarchical(0, [RIGHT, WRONG]), hierarchical(1, [WRONG, WRONG])]
    evidence = judge(*episodes, teacher=0.1)
    key = next(key for key in evidence.teacher_logprobs if key.agent == "searcher.1")
    nothing = {**evidence.teacher_logprobs, key: np.full_like(evidence.teacher_logprobs[key], np.nan)}
    result = assign_credit(episodes, MULTIAGENT_OPD, replace(evidence, teacher_logprobs=nothing))
    assert _kinds(result) == [(FindingKind.NON_FINITE, "searcher"), (FindingKind.PARTLY_SCORED, "searcher")]
    assert all(np.isfinite(one.advantages_T).all() for one in result.signals)


def test_contract_9_a_critic_that_is_not_finite_is_named_and_not_learned_from() -> None:
    episode = chained()
    gae = RoleCredit.model_validate({"estimator": "gae", "rewards": {"team_result": 1.0}})
    values = {one.key: floats([0.0] * len(one.ids_T)) for one in token_sequences(episode)}
    first = token_sequences(episode)[0].key
    values[first][-1] = np.inf
    plan = CreditPlan(roles={"searcher": gae, "answerer": gae})
    result = assign_credit([episode], plan, replace(judge(episode), values=values))
    assert (result.findings[0].kind, result.findings[0].key) == (FindingKind.NON_FINITE, first)
    assert first not in [one.key for one in result.signals]


def test_contract_9_a_group_key_that_makes_singletons_is_named() -> None:
    episodes = [chained(0, [RIGHT]), chained(1, [WRONG])]
    result = assign_credit(episodes, CHAINED_RL, judge(*episodes))
    assert _kinds(result) == [(FindingKind.ONLY_SINGLETONS, "answerer")]
    assert result.roles["answerer"].groups == GroupCounts(groups=2, singletons=2, equal=0)


def test_contract_9_a_role_all_of_whose_advantages_are_0_is_named() -> None:
    episodes = [chained(0, [WRONG, WRONG]), chained(1, [WRONG, WRONG])]
    result = assign_credit(episodes, CHAINED_RL, judge(*episodes))
    assert _kinds(result) == [(FindingKind.NO_ADVANTAGE, "searcher"), (FindingKind.NO_ADVANTAGE, "answerer")]


def test_contract_9_sampling_that_the_teacher_cannot_be_compared_with_is_named() -> None:
    episodes = [hierarchical(0, [RIGHT, WRONG]), hierarchical(1, [WRONG, WRONG])]
    episodes[0].transcript("searcher.1").calls[0].temperature = 0.7
    evidence = judge(*episodes, teacher=0.1)
    assert _kinds(assign_credit(episodes, MULTIAGENT_OPD, evidence)) == [(FindingKind.ALTERED_SAMPLING, "searcher")]
    for episode in episodes:
        for transcript in episode.agents:
            for call in transcript.calls:
                call.temperature = 0.7
    assert assign_credit(episodes, MULTIAGENT_OPD, replace(evidence, teacher_temperature=0.7)).findings == []


def test_contract_9_episodes_that_a_service_or_the_teams_code_ended_are_set_aside_and_counted() -> None:
    episodes = [chained(0), chained(1, [WRONG, WRONG]), chained(2, searcher=[FAILED]), chained(3)]
    episodes[3].stop_reason, episodes[3].detail = StopReason.TEAM_ERROR, "KeyError: 'x'\n in a team"
    episodes[2].detail = None
    result = assign_credit(episodes, CHAINED_RL, judge(*episodes))
    assert result.set_aside == {StopReason.MODEL_FAILED: 1, StopReason.TEAM_ERROR: 1}
    assert {one.key.sample for one in result.signals} == {0, 1}
    assert [str(finding) for finding in result.findings] == [
        "episodes_set_aside: 1 of 4 episodes ended with model_failed and teach nothing",
        "episodes_set_aside: 1 of 4 episodes ended with team_error and teach nothing (the first one: KeyError: 'x' in a team)",
    ]
