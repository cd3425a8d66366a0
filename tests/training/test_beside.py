"""Evaluations in processes of their own beside the stage under way: the same numbers, and nothing is left running."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from training_factories import Notes, episode_ids, eval_stage, metrics, opd_stage, recipe, run, small_stage, start, wait_for

from searchparty.errors import UserError
from searchparty.training.beside import shared_threads
from searchparty.training.recipe import TrainRecipe
from searchparty.training.references import dependent_stages
from searchparty.training.run_directory import TrainDirectory


class Heard(Notes):
    """Keeps the order in which stages begin, here and beside."""

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[str] = []
        self.beside: list[tuple[str, bool]] = []

    def on_stage(self, name: str, kind: str, steps: int, done: int) -> None:
        self.stages.append(name)

    def on_beside(self, name: str, seconds: float | None) -> None:
        self.beside.append((name, seconds is not None))


def stages(world: Path, **changes: Any) -> dict[str, Any]:
    """A teacher, a student, and an evaluation of each and of what they began as."""
    return {
        "teacher": small_stage(world, steps=2),
        "base": eval_stage(world, baseline=None),
        "taught": eval_stage(world, policy="stage:teacher", baseline="base"),
        "student": opd_stage(world, steps=1, samples=2, candidates=2),
        "after": eval_stage(world, team="hierarchical", policy="stage:student"),
        "before": eval_stage(world, team="hierarchical"),
        **changes,
    }


def outcome(folder: Path) -> dict[str, Any]:
    """What a run's evaluations came to, without times, and without log-probabilities, whose rounding depends
    on which calls happen to share a batch; episodes in the order of questions."""
    found: dict[str, Any] = {}
    for pattern in ("report.*", "stages/*/result.json", "stages/*/stage.json"):
        found |= {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.glob(pattern))}
    for place in sorted((folder / "evaluations").iterdir()):
        summary = json.loads((place / "summary.json").read_text())
        scores = [json.loads(line) | {"seconds": None} for line in (place / "scores.jsonl").read_text().splitlines()]
        episodes = [json.loads(line) for line in (place / "episodes/eval.jsonl").read_text().splitlines()]
        ids = sorted(
            (episode["question_key"], [span["ids"] for agent in episode["agents"] for span in agent["spans"]])
            for episode in episodes
        )
        found[place.name] = (summary["quality"], summary["behaviour"], scores, ids)
    return found


@pytest.fixture(scope="module")
def alone(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("runs") / "alone"
    run(recipe(**stages(world)), folder)
    return folder


def test_three_jobs_give_the_numbers_of_one(world: Path, alone: Path, tmp_path: Path) -> None:
    heard, folder = Heard(), tmp_path / "run"
    run(recipe(**stages(world)), folder, jobs=3, listener=heard)
    assert outcome(folder) == outcome(alone)
    assert metrics(folder) == metrics(alone)
    assert episode_ids(folder) == episode_ids(alone)
    ended = [name for name, is_end in heard.beside if is_end]
    assert {"base", "before"} <= set(ended), "nothing they need is made by the stages that train"
    assert sorted([*heard.stages, *ended]) == sorted(stages(world)), "every stage once, here or beside"


def test_consecutive_evaluations_go_on_beside_each_other(world: Path, tmp_path: Path) -> None:
    heard = Heard()
    run(recipe(**{name: eval_stage(world) for name in ("one", "two", "three")}), tmp_path / "run", jobs=2, listener=heard)
    assert heard.stages[0] == "one"
    assert heard.beside[0] == ("two", False)


def test_only_what_depends_on_a_stage_that_begins_anew_is_forgotten(world: Path) -> None:
    made = recipe(
        **stages(world),
        other=small_stage(world),
        ofother=eval_stage(world, policy="stage:other", baseline="taught"),
        role=eval_stage(world, roles={"searcher": {"model": "stage:student"}}),
    )
    assert dependent_stages(made, "teacher") == {"taught", "student", "after", "role"}
    assert dependent_stages(made, "student") == {"after", "role"}
    assert dependent_stages(made, "other") == {"ofother"}
    assert dependent_stages(made, "base") == set(), "what an evaluation is compared with is no dependence"


def test_an_evaluation_of_the_untrained_policy_outlives_a_stage_that_begins_anew(
    world: Path, alone: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", str(alone), str(folder)], check=True)
    (folder / "stages/teacher/result.json").unlink()
    kept = {name: (folder / f"evaluations/{name}/episodes/eval.jsonl").stat().st_mtime_ns for name in ("base", "before")}
    heard = Heard()
    run(recipe(**stages(world)), folder, resume=True, listener=heard)
    assert heard.stages == ["teacher", "taught", "student", "after"]
    assert kept == {name: (folder / f"evaluations/{name}/episodes/eval.jsonl").stat().st_mtime_ns for name in kept}
    assert outcome(folder) == outcome(alone)
    assert metrics(folder) == metrics(alone)


def long_evaluation(world: Path) -> TrainRecipe:
    """A stage, and beside it an evaluation of many seconds."""
    return recipe(teacher=small_stage(world, steps=50), base=eval_stage(world, limit=8, samples=40, concurrency=1))


def episodes_of(folder: Path, name: str) -> bytes:
    file = folder / f"evaluations/{name}/episodes/eval.jsonl"
    return file.read_bytes() if file.is_file() else b""


def unlocked(run_directory: TrainDirectory) -> bool:
    """Whether no process is at work in a run."""
    try:
        with run_directory.locked():
            return True
    except UserError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_takes_its_evaluations_with_it(world: Path, tmp_path: Path, how: signal.Signals) -> None:
    folder = tmp_path / "run"
    process = start(long_evaluation(world), folder, "--jobs", "2")
    wait_for(lambda: episodes_of(folder, "base").count(b"\n") >= 2, process)
    assert not unlocked(TrainDirectory(folder))
    assert not unlocked(TrainDirectory(folder / "evaluations/base"))
    process.send_signal(how)
    assert process.wait() == (130 if how is signal.SIGINT else -how)
    until = time.monotonic() + 10
    while not (unlocked(TrainDirectory(folder)) and unlocked(TrainDirectory(folder / "evaluations/base"))):
        assert time.monotonic() < until, "the evaluation's process did not end"
        time.sleep(0.01)
    left = episodes_of(folder, "base")
    time.sleep(0.3)
    assert episodes_of(folder, "base") == left


def test_a_run_killed_beside_an_evaluation_is_resumed_and_equals_an_uninterrupted_one(
    world: Path, alone: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    made = recipe(**stages(world))
    process = start(made, folder, "--jobs", "2")
    wait_for(lambda: (folder / "stages/base/result.json").is_file(), process)
    process.kill()
    process.wait()
    kept = (folder / "evaluations/base/episodes/eval.jsonl").stat().st_mtime_ns
    while not unlocked(TrainDirectory(folder)):
        time.sleep(0.01)
    heard = Heard()
    run(made, folder, resume=True, jobs=2, listener=heard)
    assert "base" not in [*heard.stages, *dict(heard.beside)], "what was finished is kept"
    assert (folder / "evaluations/base/episodes/eval.jsonl").stat().st_mtime_ns == kept
    assert outcome(folder) == outcome(alone)
    assert metrics(folder) == metrics(alone)


def test_a_failing_evaluation_is_one_line_and_the_stage_beside_it_finishes_first(world: Path, tmp_path: Path) -> None:
    folder, heard = tmp_path / "run", Heard()
    broken = eval_stage(world, index=str(tmp_path / "no-such-index"))
    made = recipe(teacher=small_stage(world, steps=10), base=broken, student=opd_stage(world, steps=50))
    with pytest.raises(UserError) as failed:
        run(made, folder, jobs=2, listener=heard)
    (line,) = failed.value.lines
    assert line.startswith("stages.base: ") and "no-such-index" in line
    assert f"{line} (what is under way finishes first)" in heard.messages
    assert heard.stages == ["teacher"], "no further stage begins"
    assert (folder / "stages/teacher/result.json").is_file()


def test_a_process_that_dies_is_named_with_what_to_do(world: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    team = tmp_path / "team.py"
    team.write_text("import os\nos.abort()\n")
    made = recipe(teacher=small_stage(world, steps=1), base=eval_stage(world, team=f"{team}:Team"))
    with pytest.raises(UserError, match=r"^stages\.base: its process was ended by SIGABRT, .* --resume and fewer --jobs$"):
        run(made, folder, jobs=2)


@pytest.mark.parametrize(("jobs", "each"), [(1, 4), (2, 2), (3, 1), (9, 1)])
def test_the_processes_divide_the_threads_and_leave_them_as_they_were(jobs: int, each: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with shared_threads(jobs):
            assert torch.get_num_threads() == each
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


def test_the_command_asks_for_at_least_one_job(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "searchparty.cli.main", "train", "x.yaml", "--jobs", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "a whole number from 1 is needed, not '0'" in done.stderr
