"""What a plan may say, and what the ready-made plans make of whole episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from credit_factories import BROKEN, RIGHT, WRONG, chained, hierarchical, judge
from pydantic import ValidationError

from searchparty.credit.assign import assign_credit
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.plans import (
    CHAINED_RL,
    MULTIAGENT_OPD,
    NO_SEARCHER_SUPERVISION,
    PLANS,
    PROMPTED_CRITIC,
    SEARCHER_ON_OUTCOME,
)
from searchparty.credit.result import CreditResult
from searchparty.credit.types import SequenceKey

SEARCH, REPORT = "<search>q</search>", "<report>r</report>"


def advantage(result: CreditResult, sample: int, agent: str, candidate: int = 0) -> float:
    """The one advantage of all trainable tokens of a sequence."""
    (signal,) = [one for one in result.signals if one.key == SequenceKey("nq/q1", sample, agent, candidate)]
    found = set(signal.advantages_T[signal.trainable_T].tolist())
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_plan_written_out_and_read_again_is_the_same(name: str) -> None:
    assert CreditPlan.model_validate(PLANS[name].model_dump(mode="json")) == PLANS[name]


def test_a_role_is_a_few_lines_and_an_estimator_may_be_just_a_name() -> None:
    role = RoleCredit.model_validate({"estimator": "distillation"})
    assert role == MULTIAGENT_OPD.roles["searcher"]


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ({"estimator": "group-relativ"}, "does not match any of the expected tags"),
        ({"estimator": {"name": "distillation", "compare": "episodes"}}, "Extra inputs are not permitted"),
        ({"estimator": {"name": "distillation", "coefficient": float("nan")}}, "finite"),
        ({"estimator": "group-relative", "rewards": {"team_result": 1}}, "Field required"),
        ({"estimator": {"name": "group-relative", "compare": "episodes"}}, "needs a reward"),
        ({"estimator": "gae", "rewards": {"teacher_kl": 0.1}}, "needs a reward"),
        ({"estimator": "distillation", "rewards": {"team_result": 1}}, "reads no reward"),
        ({"estimator": "constant", "rewards": {"teacher_kl": 0.1}}, "reads no reward"),
        ({"estimator": {"name": "gae", "discount": 1.5}, "rewards": {"team_result": 1}}, "less than or equal to 1"),
    ],
)
def test_a_plan_that_would_ignore_or_lack_something_is_refused(role: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CreditPlan.model_validate({"roles": {"searcher": role}})


def test_a_plan_in_which_nothing_learns_or_nobody_searches_is_refused() -> None:
    with pytest.raises(ValidationError, match="no role learns"):
        CreditPlan.model_validate({"roles": {"a": {"estimator": "none"}, "b": {"estimator": "constant", "frozen": True}}})
    leader = MULTIAGENT_OPD.roles["leader"]
    with pytest.raises(ValidationError, match="searching_role is searcher"):
        CreditPlan(roles={"leader": leader})


def test_stage_1_compares_searchers_over_episodes_and_answers_within_one() -> None:
    episodes = [
        chained(0, [RIGHT, WRONG], searcher=[SEARCH, SEARCH, REPORT]),
        chained(1, [WRONG, WRONG], searcher=[SEARCH, REPORT]),
        chained(2, [WRONG, BROKEN], searcher=[SEARCH, "no action"]),
    ]
    result = assign_credit(episodes, CHAINED_RL, judge(*episodes))
    rewards = np.array([0.9 + 0.1, 0.0 + 0.05, -1.0])
    expected = (rewards - rewards.mean()) / rewards.std(ddof=1)
    assert [advantage(result, number, "searcher.1") for number in range(3)] == pytest.approx(expected, rel=1e-5)
    root = 1 / np.sqrt(2)
    answers = [advantage(result, 0, "answerer.1", 0), advantage(result, 0, "answerer.1", 1)]
    assert answers == pytest.approx([root, -root])
    assert advantage(result, 1, "answerer.1", 0) == 0
    assert result.roles["searcher"].rewards["team_result"] == pytest.approx(1 / 3)
    assert result.roles["searcher"].rewards["total"] == pytest.approx(rewards.mean())


def test_an_answer_without_its_tag_earns_minus_one_beside_a_wrong_one() -> None:
    episode = chained(answers=[RIGHT, WRONG, BROKEN])
    result = assign_credit([episode], CHAINED_RL, judge(episode))
    rewards = np.array([1.0, 0.0, -1.0])
    found = [advantage(result, 0, "answerer.1", number) for number in range(3)]
    assert found == pytest.approx(rewards / rewards.std(ddof=1))


def test_stage_2_gives_each_role_its_own_signal() -> None:
    episodes = [hierarchical(0, [RIGHT, WRONG]), hierarchical(1, [WRONG, WRONG])]
    result = assign_credit(episodes, MULTIAGENT_OPD, judge(*episodes, teacher=0.5))
    assert advantage(result, 0, "searcher.1") == pytest.approx(0.01 * 0.5)
    assert advantage(result, 1, "searcher.1") == pytest.approx(0.01 * 0.5)
    leader = result.roles["leader"]
    assert leader.rewards["assignment"] == pytest.approx(1 / 6)
    tokens = [one.trainable_T.sum() for one in result.signals if one.role == "leader"]
    assert leader.rewards["teacher_divergence"] == pytest.approx(-0.5 * np.mean(tokens))
    # R = 0.9·R_EM + 0.1/6 + 0.001·0.5·tokens; both Leaders said the same, so the penalty cancels.
    root = 1 / np.sqrt(2)
    assert [advantage(result, number, "leader.1") for number in (0, 1)] == pytest.approx([root, -root], rel=1e-5)
    assert result.roles["answerer"].scored_tokens == result.roles["answerer"].tokens
    assert result.findings == []


def test_the_penalty_of_a_longer_answer_is_larger() -> None:
    episode = hierarchical(0, [RIGHT, WRONG])
    result = assign_credit([episode], MULTIAGENT_OPD, judge(episode, teacher=-2.0))
    tokens = [int(one.trainable_T.sum()) for one in result.signals if one.role == "answerer"]
    rewards = np.array([1.0, 0.0]) - 0.001 * 2.0 * np.array(tokens)
    expected = (rewards - rewards.mean()) / np.array([1.0, 0.0]).std(ddof=1)
    assert [advantage(result, 0, "answerer.1", number) for number in (0, 1)] == pytest.approx(expected, rel=1e-5)


def test_a_searcher_on_outcome_reward_gets_what_its_team_got_and_so_do_its_siblings() -> None:
    leader = ["<task>a</task><task>b</task>", "<select>1</select>"]
    episodes = [hierarchical(n, answer, leader=leader, searcher=[REPORT]) for n, answer in enumerate([[RIGHT], [WRONG]])]
    result = assign_credit(episodes, SEARCHER_ON_OUTCOME, judge(*episodes, teacher=0.0))
    root = 1 / np.sqrt(2)
    found = [advantage(result, number, agent) for number in (0, 1) for agent in ("searcher.1", "searcher.2")]
    assert found == pytest.approx([root, root, -root, -root])


def test_a_prompted_critic_compares_reports_by_the_judges_scores() -> None:
    episodes = [hierarchical(0), hierarchical(1)]
    scores = {SequenceKey("nq/q1", number, "searcher.1", 0): score for number, score in enumerate([0.8, 0.2])}
    result = assign_credit(episodes, PROMPTED_CRITIC, judge(*episodes, teacher=0.0, scores={"judge": scores}))
    root = 1 / np.sqrt(2)
    assert [advantage(result, number, "searcher.1") for number in (0, 1)] == pytest.approx([root, -root])
    assert result.roles["searcher"].rewards["judge"] == pytest.approx(0.5)


def test_a_report_that_the_judge_did_not_score_is_refused_and_a_missing_report_needs_no_score() -> None:
    reported, silent = (
        hierarchical(0),
        hierarchical(1, searcher=["no action"], leader=["<task>a</task>", "<select>none</select>"]),
    )
    with pytest.raises(ValueError, match="its score named judge is None"):
        assign_credit([reported], PROMPTED_CRITIC, judge(reported, teacher=0.0))
    result = assign_credit([silent], PROMPTED_CRITIC, judge(silent, teacher=0.0))
    assert result.roles["searcher"].rewards["total"] == -1.0


def test_an_unsupervised_searcher_hands_out_no_signal_and_is_still_counted() -> None:
    episode = hierarchical(0)
    result = assign_credit([episode], NO_SEARCHER_SUPERVISION, judge(episode, teacher=0.0))
    assert {one.role for one in result.signals} == {"leader", "answerer"}
    searcher = result.roles["searcher"]
    assert (searcher.episodes, searcher.sequences, searcher.tokens) == (1, 1, 0)


def test_a_frozen_role_hands_out_no_signal_and_shows_its_rewards() -> None:
    episodes = [chained(0), chained(1)]
    frozen = CHAINED_RL.roles["searcher"].model_copy(update={"frozen": True})
    plan = CreditPlan(roles={**CHAINED_RL.roles, "searcher": frozen})
    result = assign_credit(episodes, plan, judge(*episodes))
    assert {one.role for one in result.signals} == {"answerer"}
    assert result.roles["searcher"].rewards["behaviour"] == 0.5
    assert not any(finding.role == "searcher" for finding in result.findings)
