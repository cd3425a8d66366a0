"""What a planned workflow costs and whether it could be carried out: the parts CP and FP of a planner's reward.

Reads the record of a planner's turn; knows no executor's code and no answer. R = F1 − α·CP − FP, with CP the sum of three parts
that each lie between 0 and 1. Source: MAO-ARAG, equations (4) to (6) and appendix A.

What counts is what worked: the summary that follows a decomposition, and the fallback of one that failed, cost what they cost.
A workflow that breaks a rule was not carried out, so its CP is 0 and its FP is 1. The paper does not say whether a
decomposition answers for what its sub-questions cost; `PlannerCosts.sub_questions` decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, field_validator, model_validator

from searchparty.costs.prices import Prices, load_prices, priced_name
from searchparty.costs.spending import Tokens
from searchparty.credit.strict import StrictModel
from searchparty.episodes.types import Episode, PlannerTurn
from searchparty.errors import UserError

PAPER_TOKEN_COSTS = {"QDS": 0.91e-4, "QDP": 1.00e-4, "QR": 0.88e-4, "DS": 2.08e-4, "AG": 1.58e-4, "AS": 1.48e-4}
"""USD that one use of an executor costs on average; the paper's table 3."""
DEAREST = 6.02e-4
"""USD of QR, DS, AG and AS together, the dearest workflow of the paper: it counts as 1."""
TURNS_AT_MOST = 4
"""Additional rounds that count as 1: as many as sub-questions are allowed."""

Price = Annotated[float, Field(ge=0)]


class WorkflowCost(NamedTuple):
    """The three parts of CP, each from 0 to 1."""

    tokens: float
    turns: float
    search: float


def _read_prices(value: Any) -> Any:
    """The prices of a file, where its path is given: so the resolved recipe holds the prices themselves."""
    if not isinstance(value, str | Path):
        return value
    try:
        return load_prices(Path(value))
    except UserError as error:
        raise ValueError("\n".join(error.lines)) from None


class PlannerCosts(StrictModel):
    """How the cost of a workflow is computed."""

    tokens: Literal["table", "measured"] = "table"
    """`table`: each executor's mean cost, whatever it wrote. `measured`: the tokens of its calls by class, at `prices`."""
    table: dict[str, Price] = Field(default_factory=lambda: dict(PAPER_TOKEN_COSTS))
    """USD of one use, by abbreviation; an executor that is not named costs nothing."""
    dearest: Annotated[float, Field(gt=0)] = DEAREST
    """USD that count as 1; what costs more counts as 1 too."""
    prices: Annotated[Prices | None, BeforeValidator(_read_prices)] = None
    """For `measured`: a file of prices, as for `searchparty costs`, or what would stand in it; it must name every model that
    plays an executor. Its price of a search is passed over: the search is a part of CP by itself."""
    sub_questions: Literal["apart", "included"] = "apart"
    """`apart`: a turn answers for its own workflow. `included`: a decomposition answers for the workflows of its sub-questions
    too, as for a return that is not discounted, so that a planner learns what it costs to decompose."""
    token_weight: Price = 1.0
    turn_weight: Price = 1.0
    search_weight: Price = 1.0

    @field_validator("table")
    @classmethod
    def _complete(cls, table: dict[str, float]) -> dict[str, float]:
        """Costs that are not named keep the paper's value."""
        return PAPER_TOKEN_COSTS | table

    @model_validator(mode="after")
    def _no_idle_prices(self) -> PlannerCosts:
        """Refuse measured tokens without prices, and prices that nothing looks at."""
        if self.tokens == "measured" and self.prices is None:
            raise ValueError("tokens is measured, which needs prices; give a file of prices")
        if self.tokens == "table" and self.prices is not None:
            raise ValueError("prices means nothing where tokens is table; remove it, or set tokens to measured")
        return self

    def weighed(self, parts: WorkflowCost) -> float:
        """CP: the weighted sum of its parts."""
        return self.token_weight * parts.tokens + self.turn_weight * parts.turns + self.search_weight * parts.search


def invalid_workflow(episode: Episode, agent: str) -> float:
    """FP of one planner's turn: 1.0 if the workflow is not well-formed and executable, else 0.0."""
    turn = turn_of(episode, agent)
    return float(turn is None or turn.broken_rule is not None)


def planner_cost(episode: Episode, agent: str, costs: PlannerCosts) -> float:
    """CP of one planner's turn: the weighted sum of its parts, and if they count, that of the turns that follow from it."""
    turn = turn_of(episode, agent)
    if turn is None:
        return 0.0
    own = costs.weighed(workflow_cost(episode, turn, costs))
    if costs.sub_questions == "apart" or not turn.sub_questions:
        return own
    planners = [one.agent for one in episode.planner_turns if one.agent is not None]
    return own + sum(planner_cost(episode, one, costs) for one in planners if episode.transcript(one).parent == agent)


def workflow_cost(episode: Episode, turn: PlannerTurn, costs: PlannerCosts) -> WorkflowCost:
    """The parts of CP of one turn, or of one question of a fixed workflow. All 0 if the workflow breaks a rule."""
    if turn.broken_rule is not None:
        return WorkflowCost(0.0, 0.0, 0.0)
    worked = [use.executor for use in turn.uses]
    spent = sum(costs.table.get(name, 0.0) for name in worked) if costs.tokens == "table" else _measured(episode, turn, costs)
    rounds = turn.sub_questions if turn.serial else min(turn.sub_questions, 1)
    return WorkflowCost(min(spent / costs.dearest, 1.0), min(rounds / TURNS_AT_MOST, 1.0), float("RA" in worked))


def turn_of(episode: Episode, agent: str) -> PlannerTurn | None:
    """The planner's turn that an agent took; None if it took none."""
    return next((turn for turn in episode.planner_turns if turn.agent == agent), None)


def _measured(episode: Episode, turn: PlannerTurn, costs: PlannerCosts) -> float:
    """USD of the calls of the executors that worked in this turn. Raises UserError if it cannot be known."""
    assert costs.prices is not None
    return sum(_price(episode, use.agent, costs.prices) for use in turn.uses if use.agent is not None)


def _price(episode: Episode, agent: str, prices: Prices) -> float:
    transcript, tokens = episode.transcript(agent), Tokens()
    for call in transcript.calls:
        tokens.add(call)
    price, where = prices.of(transcript.model), f"{episode.question_key}, sample {episode.sample}, {agent}"
    if price is None:
        raise UserError(f"{where}: planner_costs.prices names no model {priced_name(transcript.model)}; add it")
    usd = tokens.usd(price)
    if usd is None:
        raise UserError(f"{where}: its model does not say how many tokens it used; set planner_costs.tokens to table")
    return usd
