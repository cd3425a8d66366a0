"""Evidence that does not fit is refused; a batch gives the same signals in whatever order it comes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from credit_factories import BROKEN, RIGHT, WRONG, chained, floats, hierarchical, judge
from hypothesis import given, settings
from hypothesis import strategies as st

from searchparty.credit.assign import assign_credit
from searchparty.credit.evidence import Evidence
from searchparty.credit.gathering import sequences_to_score
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.plans import CHAINED_RL, MULTIAGENT_OPD
from searchparty.credit.sequences import token_sequences
from searchparty.credit.types import Signal
from searchparty.episodes.types import Call
from searchparty.errors import Failure, FailureKind, UserError

EPISODES = [
    hierarchical(0, [RIGHT, WRONG], "q1"),
    hierarchical(1, [WRONG, BROKEN], "q1"),
    hierarchical(0, [WRONG, WRONG], "q2"),
    hierarchical(1, [RIGHT, RIGHT], "q2", leader=["<task>a</task><task>b</task>", "<select>1</select>"]),
]


def same(one: Signal, other: Signal) -> bool:
    """Whether two signals hold the same, rounding of sums aside."""
    arrays = ("ids_T", "trainable_T", "old_logprobs_T", "advantages_T", "weights_T")
    return all(np.allclose(getattr(one, name), getattr(other, name), atol=1e-6) for name in arrays)


@settings(max_examples=15, deadline=None)
@given(st.permutations(EPISODES))
def test_the_order_of_episodes_does_not_matter(episodes: list) -> None:  # type: ignore[type-arg]
    evidence = judge(*EPISODES, teacher=0.25)
    expected = {one.key: one for one in assign_credit(EPISODES, MULTIAGENT_OPD, evidence).signals}
    found = {one.key: one for one in assign_credit(episodes, MULTIAGENT_OPD, evidence).signals}
    assert found.keys() == expected.keys()
    assert all(same(found[key], expected[key]) for key in expected)


def test_equal_input_gives_equal_output_to_the_bit() -> None:
    evidence = judge(*EPISODES, teacher=0.25)
    first, second = (assign_credit(EPISODES, MULTIAGENT_OPD, evidence) for _ in range(2))
    for one, other in zip(first.signals, second.signals, strict=True):
        assert one.advantages_T.tobytes() == other.advantages_T.tobytes()
        assert one.weights_T.tobytes() == other.weights_T.tobytes()


def test_signals_come_in_the_order_of_episodes_agents_and_candidates() -> None:
    result = assign_credit(EPISODES, MULTIAGENT_OPD, judge(*EPISODES, teacher=0.25))
    assert [one.key for one in result.signals] == [one.key for episode in EPISODES for one in token_sequences(episode)]


def test_the_teacher_is_asked_for_the_roles_that_need_it_and_no_others() -> None:
    assert sequences_to_score([chained()], CHAINED_RL, lambda role: role.needs_teacher) == []
    searcher_alone = CreditPlan(
        roles={**CHAINED_RL.roles, "searcher": RoleCredit.model_validate({"estimator": "distillation"})}
    )
    assert [one.key.agent for one in sequences_to_score([chained()], searcher_alone, lambda role: role.needs_teacher)] == [
        "searcher.1"
    ]


def test_a_teacher_that_scored_another_number_of_tokens_is_refused() -> None:
    episode = hierarchical()
    evidence = judge(episode, teacher=0.0)
    key = token_sequences(episode)[1].key
    short = {**evidence.teacher_logprobs, key: evidence.teacher_logprobs[key][:-1]}
    with pytest.raises(ValueError, match=r"searcher\.1.*log-probabilities of the teacher have shape"):
        assign_credit([episode], MULTIAGENT_OPD, replace(evidence, teacher_logprobs=short))


def test_what_a_teacher_says_of_tokens_that_were_not_sampled_is_never_read() -> None:
    evidence = judge(*EPISODES, teacher=0.25)
    spoiled = {}
    for one in (one for episode in EPISODES for one in token_sequences(episode)):
        spoiled[one.key] = np.where(one.trainable_T, evidence.teacher_logprobs[one.key], np.nan).astype(np.float32)
    clean = assign_credit(EPISODES, MULTIAGENT_OPD, evidence)
    found = assign_credit(EPISODES, MULTIAGENT_OPD, replace(evidence, teacher_logprobs=spoiled))
    assert found.findings == clean.findings
    assert all(same(one, other) for one, other in zip(found.signals, clean.signals, strict=True))


def test_log_probabilities_computed_anew_replace_those_that_were_recorded() -> None:
    episode = hierarchical()
    for transcript in episode.agents:
        for span in transcript.spans:
            span.logprobs = None
    sequences = token_sequences(episode, logprobs_required=False)
    anew = {one.key: floats([-0.25] * len(one.ids_T)) for one in sequences}
    teacher = {one.key: floats([-0.5] * len(one.ids_T)) for one in sequences}
    evidence = replace(judge(episode), old_logprobs=anew, teacher_logprobs=teacher)
    for signal in assign_credit([episode], MULTIAGENT_OPD, evidence).signals:
        assert set(signal.old_logprobs_T[signal.trainable_T].tolist()) == {-0.25}
        if signal.role == "searcher":
            assert signal.advantages_T[signal.trainable_T] == pytest.approx(0.01 * (-0.5 + 0.25))
    del anew[sequences[0].key]
    with pytest.raises(ValueError, match="computed anew, but not for it"):
        assign_credit([episode], MULTIAGENT_OPD, evidence)


def test_an_episode_whose_answer_was_not_judged_is_refused() -> None:
    episode = chained()
    with pytest.raises(ValueError, match="its answer was not judged"):
        assign_credit([episode], CHAINED_RL, Evidence({}))
    with pytest.raises(ValueError, match="1 candidates were judged, 2 were sampled"):
        assign_credit([episode], CHAINED_RL, judge(chained(answers=[RIGHT])))


def test_an_episode_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="nq/q1: sample 0 is there twice"):
        assign_credit([chained(), chained()], CHAINED_RL, judge(chained()))


def test_a_role_that_the_plan_does_not_name_is_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"credit\.roles: the team hierarchical has a role leader"):
        assign_credit([hierarchical()], CHAINED_RL, judge(hierarchical()))


def test_a_role_that_does_not_learn_may_be_played_without_token_ids() -> None:
    episodes = [chained(0), chained(1)]
    plan = CreditPlan(roles={**CHAINED_RL.roles, "searcher": RoleCredit.model_validate({"estimator": "none"})})
    for episode in episodes:
        episode.token_exact = False
        for span in episode.transcript("searcher.1").spans:
            span.ids = span.logprobs = None
    result = assign_credit(episodes, plan, judge(*episodes))
    assert {one.role for one in result.signals} == {"answerer"}
    assert result.roles["searcher"].sequences == 2


def test_the_critics_targets_reach_the_signal() -> None:
    episode = chained()
    gae = RoleCredit.model_validate({"estimator": "gae", "rewards": {"team_result": 1.0}})
    plan = CreditPlan(roles={"searcher": gae, "answerer": gae})
    values = {one.key: floats([0.25] * len(one.ids_T)) for one in token_sequences(episode)}
    for signal in assign_credit([episode], plan, replace(judge(episode), values=values)).signals:
        assert signal.returns_T is not None
        assert set(signal.returns_T[signal.trainable_T].tolist()) == {1.0}
        assert set(signal.advantages_T[signal.trainable_T].tolist()) == {0.75}


def test_an_answering_agent_whose_last_call_failed_earns_nothing_for_the_turn_before() -> None:
    episode = chained(0, [RIGHT, WRONG])
    transcript = episode.transcript("answerer.1")
    failed = Failure("model", FailureKind.CONTEXT_OVERFLOW, "full")
    transcript.calls.append(Call(9, 0, 2, 1.0, 1.0, 0, 5, 0.0, failure=failed))
    found = assign_credit([episode], CHAINED_RL, judge(episode)).roles["answerer"].rewards
    assert (found["exact_match"], found["well_formed"], found["total"]) == (0.0, 1.0, 0.0)
