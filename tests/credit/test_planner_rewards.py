"""A planner's reward, hand-worked: F1 of the final answer, less α times the workflow's cost, less 1 for a broken workflow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from credit_factories import judge

from playing import Lines, play_lines
from searchparty.credit.assign import assign_credit
from searchparty.credit.plan import CreditPlan
from searchparty.credit.planner_rewards import PlannerCosts, invalid_workflow, planner_cost, workflow_cost
from searchparty.credit.plans import MAO_ARAG
from searchparty.credit.sequences import token_sequences
from searchparty.episodes.types import Episode, SpanKind
from searchparty.errors import UserError
from searchparty.teams.planned import Planned

ANSWER = "<answer>Paris, France</answer>"
"""Two thirds of F1 with the golden answer Paris."""


def questions(count: int) -> str:
    return "\n".join(f"<question>Where is {number}?</question>" for number in range(count))


def planned(*plans: str, parts: int = 2, **options: Any) -> Episode:
    """An episode of the team whose planner writes these workflows, one after the other."""
    lines = Lines(
        {
            "planner": [f"<workflow>{plan}</workflow>" for plan in plans], "qds": [questions(parts)], "qdp": [questions(parts)],
            "qr": ["<query>capital France</query>"], "ds": ["<documents>1</documents>"], "ag": [ANSWER], "as": [ANSWER],
        }
    )  # fmt: skip
    episode = play_lines(Planned(**options), lines)
    for transcript in episode.agents:
        for span in transcript.spans:
            if span.kind is SpanKind.ACTION:
                span.logprobs = [-1.0] * len(span.ids or ())
    return episode


@pytest.mark.parametrize(
    ("workflow", "parts", "tokens", "turns", "search"),
    [
        ("AG", 0, 1.58, 0.0, 0.0),
        ("RA, AG", 0, 1.58, 0.0, 1.0),
        ("QR, RA, AG", 0, 0.88 + 1.58, 0.0, 1.0),
        ("RA, DS, AG", 0, 2.08 + 1.58, 0.0, 1.0),
        ("QR, RA, DS, AG", 0, 0.88 + 2.08 + 1.58, 0.0, 1.0),
        ("QDS", 2, 0.91 + 1.48, 0.5, 0.0),
        ("QDS", 4, 0.91 + 1.48, 1.0, 0.0),
        ("QDP", 2, 1.00 + 1.48, 0.25, 0.0),
        ("QDP", 4, 1.00 + 1.48, 0.25, 0.0),
    ],
)
def test_the_parts_of_the_cost_are_those_of_the_papers_appendix(workflow, parts, tokens, turns, search) -> None:
    episode = planned(workflow, *["AG"] * parts, parts=parts)
    cost = workflow_cost(episode, episode.planner_turns[0], PlannerCosts())
    assert cost == pytest.approx((tokens / 6.02, turns, search))


def test_a_fixed_workflow_costs_what_the_same_plan_costs() -> None:
    plan, fixed = planned("QR, RA, AG"), planned(workflow="QR,RA,AG")
    costs = [workflow_cost(one, one.planner_turns[0], PlannerCosts()) for one in (plan, fixed)]
    assert costs[0] == costs[1] == pytest.approx((2.46 / 6.02, 0.0, 1.0))


def test_a_decomposition_that_failed_costs_its_fallback_too() -> None:
    episode = planned("QDP", parts=1)
    cost = workflow_cost(episode, episode.planner_turns[0], PlannerCosts())
    assert cost == pytest.approx(((1.00 + 1.58) / 6.02, 0.0, 1.0))


def test_a_broken_workflow_costs_nothing_and_is_punished() -> None:
    episode = planned("AG, RA")
    assert planner_cost(episode, "planner.1", PlannerCosts()) == 0.0
    assert invalid_workflow(episode, "planner.1") == 1.0
    assert invalid_workflow(planned("AG"), "planner.1") == 0.0
    assert invalid_workflow(episode, "planner.9") == 1.0, "an agent whose turn was never recorded planned nothing"


def rewards_of(episode: Episode, alpha: float, beta: float = 0.0) -> list[float]:
    """What the last token of each planner turn earned, with a critic that says nothing and a reference that agrees."""
    changes = {"rewards": MAO_ARAG.roles["planner"].rewards.model_copy(update={"planner_cost": alpha, "reference_kl": beta})}
    plan = MAO_ARAG.model_copy(
        update={"roles": {**MAO_ARAG.roles, "planner": MAO_ARAG.roles["planner"].model_copy(update=changes)}}
    )
    sequences = [one for one in token_sequences(episode) if one.role == "planner"]
    values = {one.key: np.zeros(len(one.ids_T), np.float32) for one in sequences}
    reference = {one.key: one.old_logprobs_T for one in sequences}
    credit = assign_credit([episode], plan, replace(judge(episode), values=values, reference_logprobs=reference))
    assert {signal.role for signal in credit.signals} == {"planner"}, "executors are frozen"
    assert len(credit.signals) == len(episode.planner_turns), "one sequence is one turn"
    for signal in credit.signals:
        assert len(set(np.diff(np.flatnonzero(signal.trainable_T)).tolist())) <= 1, "one action"
    return [float(signal.advantages_T[signal.trainable_T][-1]) for signal in credit.signals]


def test_two_turns_share_the_final_f1_and_each_pays_for_its_own_workflow() -> None:
    """QDS with one plan per sub-question: F1 = 2/3; α = 0.1.

    Turn 1: QDS and AS, 2.39/6.02 of tokens and 2 rounds of 0.25. Turn 2: RA and AG, 1.58/6.02 and a search. Turn 3: AG.
    """
    episode = planned("QDS", "RA, AG", "AG")
    found = rewards_of(episode, 0.1)
    f1 = 2 / 3
    assert found == pytest.approx(
        [f1 - 0.1 * (2.39 / 6.02 + 0.5), f1 - 0.1 * (1.58 / 6.02 + 1.0), f1 - 0.1 * (1.58 / 6.02)], abs=1e-6
    )


def test_a_turn_with_a_broken_workflow_loses_1_and_keeps_its_share_of_the_final_f1() -> None:
    assert rewards_of(planned("QDP", "RA", "AG"), 0.0) == pytest.approx([2 / 3, 2 / 3 - 1, 2 / 3], abs=1e-6)


def test_a_broken_workflow_for_the_question_itself_earns_minus_1() -> None:
    assert rewards_of(planned("RA"), 0.3) == pytest.approx([-1.0])


def test_a_planner_that_writes_no_workflow_at_all_earns_minus_1() -> None:
    lines = Lines({"planner": ["I would search first."], "ag": [ANSWER]})
    episode = play_lines(Planned(), lines)
    assert invalid_workflow(episode, "planner.1") == 1.0


def test_weights_and_a_users_own_table_change_the_cost() -> None:
    costs = PlannerCosts(table={"AG": 6.02e-4}, token_weight=2.0, search_weight=0.5)
    assert planner_cost(planned("RA, AG"), "planner.1", costs) == pytest.approx(2.0 * 1.0 + 0.5)
    assert planner_cost(planned("QR, RA, AG"), "planner.1", PlannerCosts(table={"QR": 0.0})) == pytest.approx(1.58 / 6.02 + 1)


def test_a_decomposition_answers_for_its_sub_questions_only_where_they_are_included() -> None:
    episode = planned("QDS", "RA, AG", "AG")
    own = [2.39 / 6.02 + 0.5, 1.58 / 6.02 + 1.0, 1.58 / 6.02]
    for sub_questions, expected in (("apart", own), ("included", [sum(own), *own[1:]])):
        costs = PlannerCosts(sub_questions=sub_questions)
        assert [planner_cost(episode, turn.agent, costs) for turn in episode.planner_turns] == pytest.approx(expected)


def test_included_costs_reach_through_every_depth_and_count_each_turn_once() -> None:
    episode = planned("QDP", "QDP", "AG", "AG", "AG", max_depth=2)
    costs = PlannerCosts(sub_questions="included")
    inner = next(turn for turn in episode.planner_turns[1:] if turn.sub_questions)
    answer, division = 1.58 / 6.02, 2.48 / 6.02 + 0.25
    assert planner_cost(episode, inner.agent, costs) == pytest.approx(division + 2 * answer)
    assert planner_cost(episode, "planner.1", costs) == pytest.approx(2 * division + 3 * answer)


def test_a_broken_plan_for_a_sub_question_adds_nothing_to_what_is_included() -> None:
    episode = planned("QDP", "RA", "AG")
    assert planner_cost(episode, "planner.1", PlannerCosts(sub_questions="included")) == pytest.approx(
        2.48 / 6.02 + 0.25 + 1.58 / 6.02
    )


def test_what_costs_more_than_the_dearest_workflow_counts_as_1() -> None:
    episode = planned("AG")
    assert workflow_cost(episode, episode.planner_turns[0], PlannerCosts(table={"AG": 1.0})).tokens == 1.0


def prices_file(folder: Path, model: str = "script") -> Path:
    path = folder / "prices.yaml"
    price = "{input: 0.15, cached_input: 0.05, output: 0.6}"
    path.write_text(f"dated: 2026-01-01\nsource: a test\nsearch: 9\nmodels: {{{model}: {price}}}\n")
    return path


def test_measured_tokens_are_those_of_the_executors_that_worked(tmp_path: Path) -> None:
    episode = planned("RA, AG")
    calls = episode.transcript("ag.1").calls
    calls[0].prompt_tokens, calls[0].cached_tokens, calls[0].output_tokens = 1000, 400, 100
    costs = PlannerCosts.model_validate({"tokens": "measured", "prices": prices_file(tmp_path)})
    cost = workflow_cost(episode, episode.planner_turns[0], costs)
    assert cost.tokens == pytest.approx((600 * 0.15 + 400 * 0.05 + 100 * 0.6) / 1e6 / 6.02e-4)
    calls[0].output_tokens = None
    with pytest.raises(UserError, match=r"ag\.1: its model does not say how many tokens it used; set planner_costs\.tokens"):
        planner_cost(episode, "planner.1", costs)


def test_a_model_without_a_price_is_named_and_never_free(tmp_path: Path) -> None:
    costs = PlannerCosts.model_validate({"tokens": "measured", "prices": prices_file(tmp_path, "another")})
    with pytest.raises(UserError, match=r"ag\.1: planner_costs\.prices names no model script; add it"):
        planner_cost(planned("AG"), "planner.1", costs)


def test_the_prices_themselves_stand_in_a_resolved_recipe(tmp_path: Path) -> None:
    costs = PlannerCosts.model_validate({"tokens": "measured", "prices": str(prices_file(tmp_path))})
    (tmp_path / "prices.yaml").unlink()
    assert PlannerCosts.model_validate(costs.model_dump(mode="json")) == costs


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"tokens": "measured"}, "give a file of prices"),
        ({"prices": {"dated": "2026-01-01", "source": "x", "models": {}}}, "remove it, or set tokens to measured"),
        ({"tokens": "measured", "prices": "nowhere.yaml"}, "nowhere.yaml: no such file of prices"),
    ],
)
def test_prices_and_measured_tokens_go_together(given: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        PlannerCosts.model_validate(given)


def test_a_price_that_is_negative_is_refused() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        CreditPlan.model_validate({"roles": {"planner": {"estimator": "none"}}, "planner_costs": {"table": {"AG": -1}}})


def test_the_ready_made_plan_speaks_of_every_role_of_the_team() -> None:
    assert set(MAO_ARAG.roles) == set(Planned.tags)
