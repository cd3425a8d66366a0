"""The planner of MAO-ARAG in training: imitated, then PPO with a critic; killed, resumed, audited, and compared by cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from training_factories import (
    assert_equal_runs,
    eval_stage,
    kill_at,
    metrics,
    recipe,
    run,
    sft_stage,
    small_stage,
    start,
)

from searchparty.errors import UserError
from searchparty.training.audit import audit_run
from searchparty.training.checking import check_recipe
from searchparty.training.recipe import TrainRecipe
from searchparty.training.records import read_step


def executors(world: Path) -> dict[str, Any]:
    """Scripts in place of every executor."""
    model = {"model": f"scripted:world-executors@{world}"}
    return {"planner": {"sampling": {"max_tokens": 40}}, **dict.fromkeys(("qds", "qdp", "qr", "ds", "ag", "as"), model)}


@pytest.fixture(scope="module")
def made(world: Path) -> TrainRecipe:
    own = {"roles": executors(world), "sampling": {"max_tokens": 256}}
    expert = f"scripted:world-planner-imperfect@{world}"
    alpha = {"extends": "mao-arag", "roles": {"planner": {"rewards": {"planner_cost": 0.1}}}}
    fixed = {"limit": 8, **own}
    return recipe(
        start=sft_stage(
            world, teams=["planned"], expert=expert, imitate_roles=["planner"], limit=12, epochs=1,
            learner={"learning_rate": 2e-3}, checkpoint={"every": 100}, **own,
        ),
        planner=small_stage(
            world, team="planned", policy="stage:start", reference="stage:start", credit=alpha, critic={}, candidates=1,
            steps=3, questions_per_step=4, **own,
        ),
        answer=eval_stage(world, team={"name": "planned", "workflow": "AG"}, **fixed),
        search=eval_stage(world, team={"name": "planned", "workflow": "RA,AG"}, baseline="answer", **fixed),
    )  # fmt: skip


@pytest.fixture(scope="module")
def uninterrupted(made: TrainRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "uninterrupted"
    check_recipe(made)
    run(made, folder)
    return folder


def test_planner_and_critic_killed_and_resumed_equal_an_uninterrupted_run(
    made: TrainRecipe, uninterrupted: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    kill_at(start(made, folder), folder, "planner", 2)
    run(made, folder, resume=True)
    assert_equal_runs(folder, uninterrupted, "planner")


def test_every_signal_is_one_planner_turn_and_the_audit_proves_it(uninterrupted: Path) -> None:
    report = audit_run(uninterrupted)
    assert report.violation is None
    record = read_step(uninterrupted / "stages/planner/episodes", 1)
    turns = [(one.question_key, one.sample, turn.agent) for one in record.episodes for turn in one.planner_turns]
    assert [(one.key.question_key, one.key.sample, one.key.agent) for one in record.signals] == turns
    assert {one.role for one in record.signals} == {"planner"}


def test_the_parts_of_the_reward_are_kept_apart_in_the_metrics(uninterrupted: Path) -> None:
    lines = [line for line in metrics(uninterrupted) if line["stage"] == "planner" and line["kind"] == "step"]
    for line in lines:
        rewards = line["roles"]["planner"]["rewards"]
        parts = rewards["f1"] - 0.1 * rewards["planner_cost"] - rewards["invalid_workflow"]
        assert rewards["outcome"] == pytest.approx(parts)
        assert rewards["total"] == pytest.approx(parts - rewards["reference_penalty"])


def test_fixed_workflows_are_compared_by_quality_and_cost(uninterrupted: Path) -> None:
    answer, search = json.loads((uninterrupted / "workflows.json").read_text())
    assert answer["point"]["planner_cost"] == pytest.approx(1.58 / 6.02)
    assert search["point"]["planner_cost"] == pytest.approx(1.58 / 6.02 + 1)
    assert search["cost"] == pytest.approx({"value": 1.0, "low": 1.0, "high": 1.0})
    assert search["f1"]["value"] == pytest.approx(search["point"]["f1"] - answer["point"]["f1"])
    assert (answer["f1"], search["baseline"]) == (None, "answer")
    assert "| search |" in (uninterrupted / "workflows.md").read_text()


def test_a_role_that_no_team_has_cannot_be_imitated(world: Path) -> None:
    with pytest.raises(UserError, match="imitate_roles: the team chained has no role planner"):
        check_recipe(recipe(start=sft_stage(world, teams=["chained"], imitate_roles=["planner"])))
