"""A planner's reward, hand-worked: F1 of the final answer, less α times the workflow's cost, less 1 for a broken workflow."""

from __future__ import annotations

import pytest
from credit_factories import RIGHT, chained

from searchparty.credit.plan import CreditPlan
from searchparty.credit.planner_rewards import PlannerCosts, invalid_workflow, planner_cost, workflow_cost
from searchparty.episodes.types import Episode, ExecutorUse, PlannerTurn
from searchparty.errors import UserError


def planned(*turns: PlannerTurn) -> Episode:
    episode = chained(answers=[RIGHT])
    episode.planner_turns = list(turns)
    return episode


def turn(*executors: str, sub_questions: int = 0, broken: str | None = None) -> PlannerTurn:
    return PlannerTurn("searcher.1", "Who?", list(executors), broken, sub_questions=sub_questions)


@pytest.mark.parametrize(
    ("executors", "sub_questions", "tokens", "turns", "search"),
    [
        (("AG",), 0, 1.58 / 6.02, 0.0, 0.0),
        (("RA", "AG"), 0, 1.58 / 6.02, 0.0, 1.0),
        (("QR", "RA", "AG"), 0, 2.46 / 6.02, 0.0, 1.0),
        (("RA", "DS", "AG"), 0, 3.66 / 6.02, 0.0, 1.0),
        (("QR", "RA", "DS", "AG"), 0, 4.54 / 6.02, 0.0, 1.0),
        (("QDS",), 3, 0.91 / 6.02, 0.75, 0.0),
        (("QDS",), 4, 0.91 / 6.02, 1.0, 0.0),
        (("QDP",), 4, 1.00 / 6.02, 0.25, 0.0),
        (("QDP",), 2, 1.00 / 6.02, 0.25, 0.0),
    ],
)
def test_the_parts_of_the_cost_are_those_of_the_papers_appendix(executors, sub_questions, tokens, turns, search) -> None:
    cost = workflow_cost(planned(turn(*executors, sub_questions=sub_questions)), "searcher.1", PlannerCosts())
    assert cost == pytest.approx((tokens, turns, search))


def test_a_broken_workflow_costs_nothing_and_is_punished() -> None:
    episode = planned(turn("AG", "RA", broken="order"))
    assert planner_cost(episode, "searcher.1", PlannerCosts()) == 0.0
    assert invalid_workflow(episode, "searcher.1") == 1.0
    assert invalid_workflow(planned(turn("AG")), "searcher.1") == 0.0
    assert invalid_workflow(planned(), "searcher.1") == 1.0, "an agent whose turn was never recorded planned nothing"


def test_weights_and_a_users_own_table_change_the_cost() -> None:
    costs = PlannerCosts(table={"AG": 6.02e-4, "MINE": 3.01e-4}, token_weight=2.0, search_weight=0.5)
    assert planner_cost(planned(turn("RA", "AG")), "searcher.1", costs) == pytest.approx(2.0 * 1.0 + 0.5)
    assert planner_cost(planned(turn("MINE")), "searcher.1", costs) == pytest.approx(2.0 * 0.5)
    assert planner_cost(planned(turn("QR")), "searcher.1", costs) == pytest.approx(2.0 * 0.88 / 6.02)


def test_what_costs_more_than_the_dearest_workflow_counts_as_1() -> None:
    costs = PlannerCosts(table={"AG": 1.0})
    assert workflow_cost(planned(turn("AG")), "searcher.1", costs).tokens == 1.0


def test_measured_tokens_are_those_of_the_executors_that_worked() -> None:
    one = turn("RA", "AG")
    one.uses = [ExecutorUse("RA", None), ExecutorUse("AG", "answerer.1")]
    episode = planned(one)
    calls = episode.transcript("answerer.1").calls
    calls[0].prompt_tokens, calls[0].output_tokens = 1000, 100
    costs = PlannerCosts(tokens="measured", input_price=0.15, output_price=0.6)
    assert workflow_cost(episode, "searcher.1", costs).tokens == pytest.approx((1000 * 0.15 + 100 * 0.6) / 1e6 / 6.02e-4)
    calls[0].output_tokens = None
    with pytest.raises(UserError, match=r"answerer\.1: its model does not say how many tokens it used"):
        workflow_cost(episode, "searcher.1", costs)


def test_a_price_that_is_negative_is_refused() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        CreditPlan.model_validate({"roles": {"planner": {"estimator": "none"}}, "planner_costs": {"table": {"AG": -1}}})
