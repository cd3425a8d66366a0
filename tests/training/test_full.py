"""Too little disk or memory: one line that says what to change, and everything up to then is whole."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from training_factories import metrics, recipe, run, small_stage

from searchparty.cli.main import main
from searchparty.config.load import dump_recipe
from searchparty.errors import UserError
from searchparty.learning.checkpoints import check
from searchparty.training.listening import SilentTrainListener
from searchparty.training.recipe import TrainRecipe
from searchparty.training.records import recorded_steps


def set_limit(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@contextmanager
def room_for_files_of(limit: int) -> Iterator[None]:
    """Within the block no file can grow beyond so many bytes; writing more fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    set_limit(limit)
    try:
        yield
    finally:
        set_limit(before)


class FillsUpAfter(SilentTrainListener):
    """Takes the room away once a step's checkpoint is there."""

    def __init__(self, step: int, limit: int) -> None:
        self._step, self._limit, self._done = step, limit, 0

    def on_step(self, line: Mapping[str, Any]) -> None:
        self._done = line["step"]

    def on_work(self, what: str, done: int, total: int) -> None:
        if self._done == self._step:
            set_limit(self._limit)


@pytest.fixture(scope="module")
def made(world: Path) -> TrainRecipe:
    return recipe(teacher=small_stage(world))


@pytest.fixture(scope="module")
def undisturbed(made: TrainRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    run(made, folder)
    return folder


CHECKPOINT, RECORD = 1_000_000, 20_000
"""Bytes that are too few for weights, and for the episodes of a step."""


@pytest.mark.parametrize(("limit", "file"), [(CHECKPOINT, "checkpoints/step-000002"), (RECORD, "episodes/step-000002.jsonl")])
def test_a_full_disk_ends_the_run_in_one_line_and_a_resumed_run_equals_an_undisturbed_one(
    made: TrainRecipe, undisturbed: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], limit: int, file: str
) -> None:
    folder = tmp_path / "run"
    with room_for_files_of(resource.RLIM_INFINITY), pytest.raises(UserError) as full:
        run(made, folder, listener=FillsUpAfter(1, limit))
    (line,) = full.value.lines
    assert line.startswith(f"stages.teacher: {folder}/stages/teacher/{file}: ")
    assert "File too large" in line
    assert "ake room and" in line
    assert "--resume" in line
    (checkpoint,) = (folder / "stages/teacher/checkpoints").iterdir()
    assert (checkpoint.name, check(checkpoint)) == ("step-000001", None)

    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(yaml.safe_load(dump_recipe(made)), sort_keys=False))
    command = ["train", str(tmp_path / "recipe.yaml"), "-o", str(folder), "--resume"]
    capfd.readouterr()
    with room_for_files_of(limit):
        assert main(command) == 2
    said = capfd.readouterr().err
    assert said.endswith(f"searchparty: error: {line}\n")
    assert "Traceback" not in said
    assert "ignored" not in said
    assert main(command) == 0
    assert metrics(folder) == metrics(undisturbed)


def test_too_little_memory_names_the_setting_and_keeps_the_last_checkpoint(
    made: TrainRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = 0

    def exhausted(*_: Any, **__: Any) -> None:
        nonlocal passes
        passes += 1
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("searchparty.learning.learner.token_logprobs", exhausted)
    with pytest.raises(UserError) as full:
        run(made, tmp_path / "run")
    (line,) = full.value.lines
    assert line.startswith(
        "stages.teacher: the learner ran out of memory; lower tokens_per_pass (now 16384), or raise checkpointed_share"
    )
    assert passes == 1
    assert recorded_steps(tmp_path / "run/stages/teacher/episodes") == []
