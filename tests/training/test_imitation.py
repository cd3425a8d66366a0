"""An sft stage: the policy imitates an expert over its own tokens, and a killed one goes on as if nothing had happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from training_factories import Notes, eval_stage, kill_at, metrics, recipe, run, sft_stage, start

from searchparty.cli.main import main
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
    kill_at(start(made, folder), folder, "start", 20)
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


@pytest.fixture(scope="module")
def recorded(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of the tiny policy at work."""
    folder = tmp_path_factory.mktemp("runs") / "recorded"
    words = ["eval", "--team", "chained", "--model", "tiny", "--index", str(world / "index"), "prompts=world", "limit=12"]
    words += ["--questions", str(world / "questions-train.jsonl"), "sampling.max_tokens=48", "-o", str(folder)]
    assert main(words) == 0
    return folder


def from_records(world: Path, recorded: Path, **changes: Any) -> TrainRecipe:
    stage = sft_stage(world, sequences_per_step=4, limit=10) | changes
    del stage["expert"], stage["teams"]
    return recipe(start=stage | {"episodes": str(recorded)})


def test_recorded_episodes_are_imitated_over_their_own_ids(world: Path, recorded: Path, tmp_path: Path) -> None:
    once, again = tmp_path / "once", tmp_path / "again"
    run(from_records(world, recorded), once)
    run(from_records(world, recorded), again)
    assert [line["loss"] for line in metrics(once)] == [line["loss"] for line in metrics(again)]
    answerers = tmp_path / "answerers"
    run(from_records(world, recorded, imitate_roles=["answerer"]), answerers)
    assert metrics(answerers)[-1]["step"] < metrics(once)[-1]["step"]


def test_ids_of_another_tokenizer_are_refused_with_the_turn_that_shows_it(world: Path, recorded: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.jsonl"
    episode = json.loads((recorded / "episodes/eval.jsonl").read_text().splitlines()[0])
    for transcript in episode["agents"]:
        for span in transcript["spans"]:
            if span["kind"] == "action":
                span["ids"] = [(number + 40) % 300 for number in span["ids"]]
    foreign.write_text(json.dumps(episode) + "\n")
    with pytest.raises(UserError, match=r"searcher\.1: its token ids do not read as the text"):
        run(from_records(world, foreign, limit=12), tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"expert": None}, "either an expert that plays, or episodes that were recorded"),
        ({"episodes": "somewhere"}, "either an expert that plays, or episodes that were recorded"),
        ({"teams": []}, "name the teams"),
        ({"expert": None, "episodes": "somewhere"}, "remove teams"),
    ],
)
def test_a_stage_has_exactly_one_thing_to_imitate(world: Path, changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        recipe(start=sft_stage(world) | changes)


def test_a_place_without_episodes_is_named(world: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no recorded episodes"):
        run(from_records(world, tmp_path), tmp_path / "run")
