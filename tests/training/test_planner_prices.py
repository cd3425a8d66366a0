"""Measured costs of a planner's workflows: every model that plays an executor has a price, or the run does not begin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from training_factories import eval_stage, metrics, recipe, run, small_stage

from searchparty.config.load import parse_recipe
from searchparty.credit.planner_rewards import workflow_cost
from searchparty.episodes.store import read_episodes
from searchparty.errors import UserError
from searchparty.training.checking import check_recipe
from searchparty.training.recipe import RLStage, TrainRecipe

SCRIPT = "scripted:world-executors"
EXECUTORS = ("qds", "qdp", "qr", "ds", "ag", "as")


def measured(world: Path, models: dict[str, dict[str, float]], changes: dict[str, Any] | None = None) -> TrainRecipe:
    """One stage whose planner pays for measured tokens by these prices, and an evaluation of a fixed workflow."""
    roles = {"planner": {"sampling": {"max_tokens": 40}}, **{role: {"model": f"{SCRIPT}@{world}"} for role in EXECUTORS}}
    own = {"roles": roles | (changes or {}), "sampling": {"max_tokens": 256}}
    costs = {"tokens": "measured", "prices": {"dated": "2026-01-01", "source": "a test", "models": models}}
    credit = {"extends": "mao-arag", "roles": {"planner": {"rewards": {"planner_cost": 0.1}}}, "planner_costs": costs}
    return recipe(
        planner=small_stage(
            world, team="planned", policy="tiny", reference="tiny", credit=credit, critic={}, candidates=1, steps=1,
            questions_per_step=4, **own,
        ),
        fixed=eval_stage(world, team={"name": "planned", "workflow": "AG"}, policy="tiny", limit=4, **own),
    )  # fmt: skip


def faults(made: TrainRecipe) -> list[str]:
    with pytest.raises(UserError) as refused:
        check_recipe(made)
    return list(refused.value.lines)


def test_a_run_earns_what_its_tokens_cost(world: Path, tmp_path: Path) -> None:
    made = measured(world, {SCRIPT: {"input": 0.0, "output": 1.0}})
    check_recipe(made)
    run(made, tmp_path / "run")
    [episode, *_] = read_episodes(tmp_path / "run/evaluations/fixed/episodes/eval.jsonl")
    [turn] = episode.planner_turns
    stage = made.stages["planner"]
    assert isinstance(stage, RLStage)
    costs = stage.credit.planner_costs
    written = sum(call.output_tokens or 0 for call in episode.transcript("ag.1").calls)
    assert workflow_cost(episode, turn, costs).tokens == pytest.approx(written / 1e6 / costs.dearest) != 0
    [point] = json.loads((tmp_path / "run/workflows.json").read_text())
    assert 0 < point["point"]["token_cost"] < 1.58 / 6.02
    [line] = [line for line in metrics(tmp_path / "run") if line["stage"] == "planner" and line["kind"] == "step"]
    assert line["roles"]["planner"]["rewards"]["planner_cost"] >= 0


def test_a_model_without_a_price_is_refused_before_the_run_in_every_stage_that_pays(world: Path) -> None:
    lines = faults(measured(world, {"gpt-4o-mini": {"input": 0.15, "output": 0.6}}))
    asked = f"credit.planner_costs.prices: models: no price for {SCRIPT}, which is in use; add it (there are: gpt-4o-mini)"
    assert lines == [f"stages.{stage}: {asked}" for stage in ("planner", "fixed")]


def test_a_named_model_of_an_endpoint_is_looked_up_before_the_run_and_an_unnamed_one_is_not(world: Path) -> None:
    prices = {SCRIPT: {"input": 0.0, "output": 1.0}}
    named = faults(measured(world, prices, {"ag": {"model": "http://127.0.0.1:9/v1#small"}}))
    assert all("no price for small" in line for line in named)
    check_recipe(measured(world, prices, {"ag": {"model": "http://127.0.0.1:9/v1"}}))


def test_an_executor_without_a_name_to_stand_in_a_file_of_prices_is_refused(world: Path) -> None:
    prices = {SCRIPT: {"input": 0.0, "output": 1.0}}
    made = measured(world, prices, {"ag": {"model": "stage:planner"}})
    assert any("the role ag is played by stage:planner, which has no price" in line for line in faults(made))


def test_a_price_of_cached_tokens_that_no_resumed_run_would_pay_again_is_refused(world: Path) -> None:
    lines = faults(measured(world, {SCRIPT: {"input": 1.0, "cached_input": 0.5, "output": 1.0}}))
    assert all("remove cached_input" in line for line in lines)


def test_the_flat_prices_of_earlier_recipes_are_refused_with_what_took_their_place(world: Path) -> None:
    document = measured(world, {SCRIPT: {"input": 0.0, "output": 1.0}}).model_dump(mode="json")
    document["stages"]["planner"]["credit"]["planner_costs"] |= {"input_price": 0.15, "output_price": 0.6}
    with pytest.raises(UserError) as refused:
        parse_recipe(TrainRecipe, document, "recipe.yaml")
    assert [line.split("; ")[1] for line in refused.value.lines] == ["did you mean prices?"] * 2
