"""An sft stage: the policy imitates an expert over its own tokens, and a killed one goes on as if nothing had happened."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from training_factories import Notes, eval_stage, metrics, recipe, run, sft_stage, start, wait_for

from searchparty.errors import UserError
from searchparty.training.recipe import TrainRecipe


@pytest.fixture(scope="module")
def made(world: Path) -> TrainRecipe:
    """More than 40 optimizer steps, a checkpoint every 20, and an evaluation of what comes of them."""
    start = sft_stage(world, sequences_per_step=2, epochs=2, learner={"schedule": {"kind": "linear", "warmup_steps": 2}})
    return recipe(start=start, trained=eval_stage(world, policy="stage:start"))


@pytest.fixture(scope="module")
def uninterrupted(made: TrainRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "sft"
    run(made, folder)
    return folder


def model_of(folder: Path) -> bytes:
    result = json.loads((folder / "stages/start/result.json").read_text())
    return (folder / result["model"] / "model.safetensors").read_bytes()


def test_the_loss_falls_and_is_named_every_twenty_steps(uninterrupted: Path) -> None:
    lines = [line for line in metrics(uninterrupted) if line["stage"] == "start"]
    assert [line["step"] for line in lines][:2] == [20, 40]
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert lines[-1]["learning_rate"] < lines[0]["learning_rate"]


def test_what_was_imitated_can_be_evaluated(uninterrupted: Path) -> None:
    (row,) = json.loads((uninterrupted / "report.json").read_text())
    assert row["questions"] == 3


def test_a_killed_stage_resumed_equals_an_uninterrupted_one(made: TrainRecipe, uninterrupted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed = start(made, folder)
    wait_for(lambda: (folder / "stages/start/checkpoints/step-000020").is_dir(), killed)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    run(made, folder, resume=True)
    assert metrics(folder) == metrics(uninterrupted)
    assert model_of(folder) == model_of(uninterrupted)


def test_only_right_episodes_are_imitated_if_the_recipe_says_so(world: Path, tmp_path: Path) -> None:
    notes = Notes()
    only = sft_stage(world, teams=["chained"], only_right=True, limit=10)
    run(recipe(start=only), tmp_path / "run", listener=notes)
    assert any(message.startswith("stage start: left out: wrong answers ") for message in notes.messages)


def test_an_expert_that_leaves_nothing_to_imitate_is_named(world: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"stages\.start: no episode of the expert is left to imitate; look at only_right"):
        run(recipe(start=sft_stage(world, expert="scripted:default", only_right=True, limit=1)), tmp_path / "run")
