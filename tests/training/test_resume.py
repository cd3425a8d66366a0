"""A run that is killed at any instant and resumed equals one that was never interrupted (contract 11)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from training_factories import (
    Notes,
    episode_ids,
    kill_at,
    metrics,
    opd_stage,
    recipe,
    run,
    small_stage,
    start,
)

from searchparty.errors import UserError
from searchparty.retrieval.bm25 import BM25Index
from searchparty.tiny import shipped_model
from searchparty.training.recipe import TrainRecipe
from searchparty.training.run import describe_environment
from searchparty.training.run_directory import TrainDirectory


@pytest.fixture(scope="module")
def made(world: Path) -> TrainRecipe:
    """Both stages, with development evaluations and a checkpoint every other step."""
    development = {"questions": str(world / "questions-dev.jsonl"), "every": 2, "limit": 2}
    return recipe(
        teacher=small_stage(world, steps=2, development=development, checkpoint={"every": 1}),
        student=opd_stage(world, steps=3, samples=2, candidates=2, checkpoint={"every": 2}),
    )


@pytest.fixture(scope="module")
def uninterrupted(made: TrainRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "uninterrupted"
    run(made, folder)
    return folder


def test_a_run_killed_in_both_stages_and_resumed_equals_an_uninterrupted_one(
    made: TrainRecipe, uninterrupted: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    kill_at(start(made, folder), folder, "teacher", 1)
    # In the student's third step: its first checkpoint is that of step 2.
    kill_at(start(made, folder, "--resume"), folder, "student", 2)
    third = start(made, folder, "--resume")
    errors = third.communicate()[1].decode()
    assert third.returncode == 0, errors
    assert metrics(folder) == metrics(uninterrupted)
    assert episode_ids(folder) == episode_ids(uninterrupted)


def test_a_checkpoint_that_was_cut_short_is_passed_over_and_named(
    made: TrainRecipe, uninterrupted: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", str(uninterrupted), str(folder)], check=True)
    (folder / "stages/teacher/result.json").unlink()
    weights = folder / "stages/teacher/checkpoints/step-000002/masters.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    notes = Notes()
    run(made, folder, resume=True, listener=notes)
    assert "masters.safetensors is cut short" in notes.messages[0]
    assert "going on from step-000001" in notes.messages[0]
    assert metrics(folder) == metrics(uninterrupted), "what was built on the damaged stage is made again"


def test_a_torn_line_of_the_metrics_is_removed(made: TrainRecipe, uninterrupted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", str(uninterrupted), str(folder)], check=True)
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write('{"stage": "stu')
    run(made, folder, resume=True)
    assert metrics(folder) == metrics(uninterrupted)


def test_metrics_that_are_gone_are_said_to_be(made: TrainRecipe, uninterrupted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", str(uninterrupted), str(folder)], check=True)
    (folder / "metrics.jsonl").unlink()
    (folder / "stages/student/result.json").unlink()
    notes = Notes()
    run(made, folder, resume=True, listener=notes)
    assert notes.messages[0] == "stage student: the metrics of 3 of its first 3 steps are gone"


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_damaged_result_of_a_stage_is_named(made: TrainRecipe, uninterrupted: Path, tmp_path: Path, text: str) -> None:
    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", str(uninterrupted), str(folder)], check=True)
    (folder / "stages/teacher/result.json").write_text(text)
    with pytest.raises(UserError, match=r"teacher/result\.json: not in the expected form"):
        run(made, folder, resume=True)


def test_a_finished_run_is_resumed_without_doing_anything(made: TrainRecipe, uninterrupted: Path) -> None:
    before = metrics(uninterrupted)
    run(made, uninterrupted, resume=True)
    assert metrics(uninterrupted) == before


def test_another_recipe_does_not_continue_a_run(made: TrainRecipe, uninterrupted: Path, world: Path) -> None:
    other = recipe(teacher=small_stage(world, steps=4), student=opd_stage(world, steps=3))
    with pytest.raises(UserError) as refused:
        run(other, uninterrupted, resume=True)
    assert any("stages.teacher.steps was 2, is now 4" in line for line in refused.value.lines)


def test_other_questions_under_the_same_name_do_not_continue_a_run(world: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_bytes((world / "questions-train.jsonl").read_bytes())
    made = recipe(teacher=small_stage(world, steps=1, questions=str(questions)))
    run(made, tmp_path / "run")
    questions.write_text("\n".join(questions.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(UserError, match=r"teacher\.questions changed since the run was begun"):
        run(made, tmp_path / "run", resume=True)


@pytest.mark.parametrize("part", ["index", "policy", "prompts"])
def test_other_contents_under_the_same_path_do_not_continue_a_run(world: Path, tmp_path: Path, part: str) -> None:
    index, policy, prompts = tmp_path / "index", tmp_path / "policy", tmp_path / "prompts"
    shutil.copytree(world / "index", index)
    shutil.copytree(shipped_model(), policy)
    prompts.mkdir()
    (prompts / "chained_searcher.yaml").write_text("turns: {}\n")
    made = recipe(teacher=small_stage(world, index=str(index), policy=str(policy), prompts=str(prompts)))
    directory = TrainDirectory(tmp_path / "run")
    directory.begin(made, describe_environment(made))
    directory.check_same(made, describe_environment(made))
    if part == "index":
        corpus = (world / "corpus.jsonl").read_text().splitlines(keepends=True)[:-1]
        (tmp_path / "corpus.jsonl").write_text("".join(corpus))
        shutil.rmtree(index)
        BM25Index.build(tmp_path / "corpus.jsonl", index)
    elif part == "policy":
        file = policy / "model.safetensors"
        file.write_bytes(file.read_bytes()[:-1] + b"\1")
    else:
        (prompts / "chained_searcher.yaml").write_text("turns: {a: b}\n")
    with pytest.raises(UserError) as refused:
        directory.check_same(made, describe_environment(made))
    (line,) = refused.value.lines
    assert line.endswith(f": teacher.{part} changed since the run was begun; begin another run for it")


def test_a_run_of_another_version_is_refused(made: TrainRecipe, uninterrupted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", str(uninterrupted), str(folder)], check=True)
    file = folder / "environment.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99, "searchparty": "9.0"}))
    with pytest.raises(UserError, match=r"made by searchparty 9\.0 \(format 99\)"):
        run(made, folder, resume=True)


def test_nothing_to_resume_is_said(made: TrainRecipe, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to resume here"):
        run(made, tmp_path / "run", resume=True)
