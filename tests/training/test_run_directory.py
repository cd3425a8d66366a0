"""Who may begin or continue a run in a directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from training_factories import recipe, rl_stage

from searchparty.errors import UserError
from searchparty.training.run_directory import MetricsLog, TrainDirectory


def refused(folder: Path, *, resume: bool = False, overwrite: bool = False) -> str:
    with pytest.raises(UserError) as error:
        TrainDirectory(folder).check_may_begin(resume=resume, overwrite=overwrite)
    (line,) = error.value.lines
    return line


def evaluation(folder: Path) -> Path:
    """What `searchparty eval` leaves."""
    (folder / "episodes").mkdir(parents=True)
    for name in ("recipe.resolved.yaml", "environment.json", "scores.jsonl", "summary.json", "questions.jsonl"):
        (folder / name).write_text("{}\n")
    return folder


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_directory_of_an_evaluation_is_never_taken_for_a_training_run(tmp_path: Path, overwrite: bool) -> None:
    folder = evaluation(tmp_path / "eval")
    assert "holds other files (episodes) but no training run; give another directory" in refused(folder, overwrite=overwrite)
    assert "nothing to resume here" in refused(folder, resume=True)
    assert (folder / "summary.json").is_file()


def test_a_bare_recipe_of_an_evaluation_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "recipe.resolved.yaml").write_text("team: chained\n")
    assert "recipe.resolved.yaml of an evaluation" in refused(tmp_path)


def test_a_file_in_the_place_of_the_directory_and_two_flags_at_once_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert refused(tmp_path / "file").endswith("is a file; give a directory for the run")
    assert "exclude each other" in refused(tmp_path, resume=True, overwrite=True)


def test_what_an_earlier_beginning_left_unfinished_may_be_begun_again(world: Path, tmp_path: Path) -> None:
    directory = TrainDirectory(tmp_path / "run")
    directory.path.mkdir()
    (directory.path / "environment.json").write_text("{}")
    directory.check_may_begin(resume=False, overwrite=False)
    directory.begin(recipe(teacher=rl_stage(world)), {"inputs": {}})
    assert directory.is_run
    assert directory.read_recipe() == recipe(teacher=rl_stage(world))


def test_two_processes_do_not_write_one_run(tmp_path: Path) -> None:
    with TrainDirectory(tmp_path).locked(), pytest.raises(UserError, match="another process is writing this run"):
        TrainDirectory(tmp_path).locked().__enter__()


def test_an_edited_recipe_that_is_no_longer_one_is_named(world: Path, tmp_path: Path) -> None:
    directory = TrainDirectory(tmp_path)
    directory.begin(recipe(teacher=rl_stage(world)), {})
    directory.recipe_file.write_text("- not\n- a recipe\n")
    with pytest.raises(UserError, match="is no recipe; was it edited by hand"):
        directory.read_recipe()


@pytest.mark.parametrize("damage", [b"garbage", b"", b"[1]", b"{}", b"\xff\xfe", b'{"stage": "te\0\0\0}'])
def test_a_damaged_line_of_the_metrics_is_named_with_its_number(tmp_path: Path, damage: bytes) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append({"stage": "teacher", "step": 1, "kind": "step"})
    with (tmp_path / "metrics.jsonl").open("ab") as stream:
        stream.write(damage + b"\n")
    with pytest.raises(UserError, match=r"metrics\.jsonl:2: no line of metrics"):
        log.keep(lambda line: True)


def test_a_recipe_that_is_no_yaml_is_refused_in_one_line(world: Path, tmp_path: Path) -> None:
    directory = TrainDirectory(tmp_path)
    directory.begin(recipe(teacher=rl_stage(world)), {})
    directory.recipe_file.write_text("stages: {\n")
    with pytest.raises(UserError) as error:
        directory.read_recipe()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["teacher", "trackers", "device", "alarms", "retriever"])
def test_the_name_of_a_stage_does_not_let_its_recipe_change(world: Path, tmp_path: Path, name: str) -> None:
    directory = TrainDirectory(tmp_path)
    directory.begin(recipe(**{name: rl_stage(world)}), {})
    directory.check_same(
        recipe(**{name: rl_stage(world, alarms={"jump": "stop"}, policy={"spec": "tiny", "device": "cpu"})}), {}
    )
    with pytest.raises(UserError, match=f"stages.{name}.steps was 2, is now 3"):
        directory.check_same(recipe(**{name: rl_stage(world, steps=3)}), {})
