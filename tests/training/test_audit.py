"""The audit passes on a run as it was made, and names the token in a copy in which one thing was changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from training_factories import opd_stage, recipe, rl_stage, run

from searchparty.cli.main import main
from searchparty.training.audit_run import audit_run
from searchparty.training.records import StepFiles

Arrays = dict[str, np.ndarray]
SPOILED_BY: list[tuple[str, str]] = [
    ("ids_N", "ids"), ("trainable_N", "masks"), ("old_logprobs_N", "sampler"), ("advantages_N", "credit"),
    ("weights_N", "credit"), ("teacher_ids_N", "teacher"),
]  # fmt: skip


@pytest.fixture(scope="module")
def made(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of both stages, one step each."""
    folder = tmp_path_factory.mktemp("audited") / "run"
    run(recipe(teacher=rl_stage(world, steps=1), student=opd_stage(world, steps=1)), folder)
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def change_arrays(folder: Path, stage: str, change: Callable[[Arrays], None]) -> None:
    """Write a step's arrays anew after a change."""
    file = StepFiles(folder / "stages" / stage / "episodes", 1).arrays
    with np.load(file) as loaded:
        arrays = {name: loaded[name].copy() for name in loaded.files}
    change(arrays)
    np.savez_compressed(file, allow_pickle=False, **arrays)


def change_episodes(folder: Path, stage: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Write a step's episodes anew after a change."""
    file = StepFiles(folder / "stages" / stage / "episodes", 1).episodes
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    change(episodes)
    file.write_text("".join(json.dumps(episode) + "\n" for episode in episodes))


def violation(folder: Path, stage: str = "student") -> Any:
    """The first violation of a stage."""
    return {audit.name: audit for audit in audit_run(folder)}[stage].counts.violation


def token_of(arrays: Arrays, number: int) -> tuple[int, int]:
    """Of a token of all sequences together: its sequence, and its place there."""
    ends = np.cumsum(arrays["lengths_S"])
    sequence = int(np.searchsorted(ends, number, side="right"))
    return sequence, number - int(ends[sequence] - arrays["lengths_S"][sequence])


def spoil(arrays: Arrays, name: str, number: int) -> None:
    """Change one entry as little as it can be changed."""
    array = arrays[name]
    if array.dtype == np.bool_:
        array[number] = not array[number]
    elif array.dtype.kind == "f":
        array[number] = np.nextafter(array[number], np.float32(np.inf))
    else:
        array[number] += 1


def test_a_run_as_it_was_made_is_proved(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(made)]) == 0
    said = capsys.readouterr().out
    assert "stage teacher: 1 steps proved. 6 episodes" in said
    assert "stage student: 1 steps proved. 6 episodes" in said
    counts = {audit.name: audit.counts for audit in audit_run(made)}
    assert counts["student"].teacher_tokens == counts["student"].trained_tokens > 0
    assert counts["student"].reports_observed >= counts["student"].reports > 0


@pytest.mark.parametrize(("name", "check"), SPOILED_BY)
def test_one_changed_entry_is_named_with_its_token(copy: Path, name: str, check: str) -> None:
    place: list[tuple[str, int, int]] = []

    def change(arrays: Arrays) -> None:
        trained = np.flatnonzero(arrays["trainable_N"] & (np.repeat(arrays["role_S"], arrays["lengths_S"]) == "searcher"))
        number = int(trained[len(trained) // 2])
        spoil(arrays, name, number)
        sequence, token = token_of(arrays, number)
        place.append((f"{arrays['question_key_S'][sequence]}, sample {arrays['sample_S'][sequence]}", token, sequence))

    change_arrays(copy, "student", change)
    found = violation(copy)
    where, token, _ = place[0]
    assert (found.check, found.token) == (check, token)
    assert found.place.startswith(where)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_single_changed_entry_is_found(copy: Path, made: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([name for name, _ in SPOILED_BY]))
    stage = data.draw(st.sampled_from(["teacher", "student"])) if name != "teacher_ids_N" else "student"
    source = StepFiles(made / "stages" / stage / "episodes", 1).arrays
    place: list[tuple[int, int]] = []

    def change(arrays: Arrays) -> None:
        # In a sequence's last entries nothing but its own tokens can be meant; a change anywhere must be found.
        number = data.draw(st.integers(0, len(arrays["ids_N"]) - 1))
        spoil(arrays, name, number)
        place.append(token_of(arrays, number))

    shutil.copyfile(source, StepFiles(copy / "stages" / stage / "episodes", 1).arrays)
    change_arrays(copy, stage, change)
    found = violation(copy, stage)
    shutil.copyfile(source, StepFiles(copy / "stages" / stage / "episodes", 1).arrays)
    assert found is not None
    assert found.token == place[0][1]


def test_a_changed_group_is_named(copy: Path) -> None:
    def change(arrays: Arrays) -> None:
        leader = int(np.flatnonzero(arrays["role_S"] == "leader")[0])
        arrays["group_S"] = arrays["group_S"].astype(object)
        arrays["group_S"][leader] = "episodes of another/question"
        arrays["group_S"] = arrays["group_S"].astype(np.str_)

    change_arrays(copy, "student", change)
    found = violation(copy)
    assert found.check == "groups"
    assert "was compared in 'episodes of another/question', its plan declares 'episodes of world/" in found.detail


def test_a_signal_of_another_role_is_named(copy: Path) -> None:
    def change(arrays: Arrays) -> None:
        arrays["role_S"][int(np.flatnonzero(arrays["role_S"] == "searcher")[0])] = "leader"

    change_arrays(copy, "student", change)
    assert "was trained as leader, the episode says searcher" in violation(copy).detail


def test_a_sampled_id_that_was_changed_in_the_episode_is_named(copy: Path) -> None:
    def change(episodes: list[dict[str, Any]]) -> None:
        span = next(span for agent in episodes[0]["agents"] for span in agent["spans"] if span["kind"] == "action")
        span["ids"][0] += 1

    change_episodes(copy, "student", change)
    assert violation(copy).check == "ids"


def test_an_observation_that_is_called_an_action_is_named(copy: Path) -> None:
    """The most dangerous fault: gradients into retrieved text."""

    def change(episodes: list[dict[str, Any]]) -> None:
        searcher = next(agent for agent in episodes[0]["agents"] if agent["role"] == "searcher" and len(agent["calls"]) > 1)
        number = next(n for n, span in enumerate(searcher["spans"]) if span["call"] == 0) + 1
        observation = searcher["spans"][number]
        observation.update(kind="action", call=1, candidate=0, logprobs=[-1.0] * len(observation["ids"]))

    change_episodes(copy, "student", change)
    assert violation(copy).check == "calls"


def test_a_token_dropped_from_a_history_is_named(copy: Path) -> None:
    def change(episodes: list[dict[str, Any]]) -> None:
        span = next(span for span in episodes[0]["agents"][0]["spans"] if span["kind"] == "observation")
        del span["ids"][0]

    change_episodes(copy, "student", change)
    found = violation(copy)
    assert found.check == "calls"
    assert "was given" in found.detail


def test_a_candidate_that_was_judged_otherwise_is_named(copy: Path) -> None:
    file = StepFiles(copy / "stages/student/episodes", 1).facts
    facts = json.loads(file.read_text())
    judged = next(one for one in facts["judged"] if one["candidates"])
    judged["candidates"][0][0] = 1.0 - judged["candidates"][0][0]
    file.write_text(json.dumps(facts))
    found = violation(copy)
    assert found.check == "answers"
    assert "candidate 0 was judged" in found.detail


def test_a_sequence_that_was_left_out_is_named(copy: Path) -> None:
    def change(arrays: Arrays) -> None:
        length = int(arrays["lengths_S"][-1])
        for name in arrays:
            arrays[name] = arrays[name][:-length] if name.endswith("_N") else arrays[name][:-1]

    change_arrays(copy, "student", change)
    assert "is not among the signals" in violation(copy).detail


def test_a_violation_ends_the_command_with_1_and_a_line(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_arrays(copy, "teacher", lambda arrays: spoil(arrays, "weights_N", int(np.flatnonzero(arrays["trainable_N"])[0])))
    assert main(["audit", str(copy), "--stage", "teacher"]) == 1
    assert "stage teacher, step 1: VIOLATION" in capsys.readouterr().err


def test_a_folder_that_is_no_training_run_ends_the_command_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(tmp_path)]) == 2
    assert "no training run here" in capsys.readouterr().err


def test_a_damaged_file_ends_the_command_with_2(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = StepFiles(copy / "stages/student/episodes", 1).arrays
    file.write_bytes(file.read_bytes()[:-200])
    assert main(["audit", str(copy)]) == 2
    assert "step-000001.npz: damaged" in capsys.readouterr().err
