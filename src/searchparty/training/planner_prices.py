"""Whether a planner's measured costs have a price for every model that plays an executor: asked before a run begins."""

from __future__ import annotations

from collections.abc import Iterator

from searchparty.config.recipe import ModelSpec, RoleSpec
from searchparty.costs.prices import check_prices, priced_name
from searchparty.credit.planner_rewards import PlannerCosts
from searchparty.errors import UserError
from searchparty.evaluation.staging import Stage
from searchparty.teams.planned import Planned
from searchparty.teams.registry import find_team
from searchparty.training.recipe import EvalStage, RLStage
from searchparty.training.references import STAGE

PLANNER = "planner"
"""The role whose own tokens are no part of a workflow's cost."""
PLACE = "credit.planner_costs.prices"


def check_named_prices(spec: RLStage | EvalStage, costs: PlannerCosts) -> None:
    """Refuse prices that leave out a model of which the recipe tells the name.

    Raises:
        UserError: one line for each; also for a model that an earlier stage makes, which has no name to stand in a file of
            prices, and for a price of cached tokens that could not be paid twice alike.
    """
    if costs.tokens != "measured" or not issubclass(find_team(spec.team.name), Planned):
        return
    assert costs.prices is not None
    faults, names = [], []
    for role, model in _executor_models(spec):
        if model.spec.startswith(STAGE):
            faults.append(
                f"{PLACE}: the role {role} is played by {model.spec}, which has no price; give roles.{role}.model a model with "
                "one, or set tokens to table"
            )
        elif (name := _name(model)) is not None:
            names.append(name)
            price = costs.prices.of(name)
            if price is not None and price.cached_input not in (None, price.input) and not _is_endpoint(model):
                faults.append(
                    f"{PLACE}: models.{priced_name(name)}: runs in this process, where what is cached depends on what ran "
                    "before: a resumed run would earn other rewards; remove cached_input"
                )
    try:
        check_prices(costs.prices, names, PLACE)
    except UserError as error:
        faults += error.lines
    if faults:
        raise UserError(*dict.fromkeys(faults))


def check_loaded_prices(stage: Stage, costs: PlannerCosts) -> None:
    """Refuse prices that leave out a model that was loaded; an endpoint tells its model's name only then. Raises UserError."""
    if costs.tokens == "measured" and isinstance(stage.team, Planned):
        assert costs.prices is not None
        check_prices(costs.prices, [part.model.identity for role, part in stage.cast.items() if role != PLANNER], PLACE)


def _executor_models(spec: RLStage | EvalStage) -> Iterator[tuple[str, ModelSpec]]:
    for role in find_team(spec.team.name).tags:
        if role != PLANNER:
            yield role, spec.roles.get(role, RoleSpec()).model or spec.policy


def _name(model: ModelSpec) -> str | None:
    """What its identity will begin with; None for an endpoint that has yet to tell."""
    if _is_endpoint(model):
        url, _, named = model.spec.partition("#")
        named = model.model_name or named
        return f"{url}#{named}" if named else None
    return model.spec.partition("@")[0] if model.spec.startswith("scripted:") else model.spec


def _is_endpoint(model: ModelSpec) -> bool:
    return model.spec.startswith(("http://", "https://"))
