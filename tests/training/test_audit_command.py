"""`searchparty audit`: what it prints, its exit codes, and what it says of directories that it cannot read."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from recording import change_arrays, files_of, write_run
from searchparty.cli.main import main
from searchparty.errors import UserError
from searchparty.training.audit import audit_run
from searchparty.training.records import read_step


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(untouched: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(untouched, tmp_path / "run"))


def test_a_proved_run_prints_its_numbers_and_exits_with_0(untouched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(untouched)]) == 0
    out = capsys.readouterr().out
    assert "student" in out and "candidates judged again" in out
    assert "start (sft): nothing is recorded of such a stage" in out
    assert "No rule is broken; recomputed numbers: equal bit by bit." in out


def test_a_stage_and_a_step_can_be_chosen(untouched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(untouched), "--stage", "teacher", "--step", "2"]) == 0
    assert "student" not in capsys.readouterr().out
    report = audit_run(untouched, stage="teacher", step=2)
    assert [(stage.name, stage.proved.episodes) for stage in report.stages] == [("teacher", 3)]


def test_a_broken_rule_is_one_line_and_exit_code_1(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_arrays(files_of(run, "teacher", 2), lambda arrays: arrays["ids_N"].__setitem__(7, 0))
    assert main(["audit", str(run)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert "stage teacher, step 2, question nq/q3, sample 0, agent searcher.1, candidate 0, token 7: histories: ids" in line
    assert main(["audit", str(run), "--stage", "student"]) == 0


def test_the_runs_of_several_seeds_are_all_proved(untouched: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        shutil.copytree(untouched, tmp_path / "runs" / f"seed-{seed}")
    assert main(["audit", str(tmp_path / "runs")]) == 0
    change_arrays(files_of(tmp_path / "runs" / "seed-2", "student"), lambda arrays: arrays["ids_N"].__setitem__(7, 0))
    assert main(["audit", str(tmp_path / "runs")]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--stage", "pupil"], "no stage pupil; its stages are start, teacher, student"),
        (["--step", "9"], "step 9 is recorded in no stage"),
        (["--tolerance", "2"], "must be at least 0 and below 1"),
    ],
)
def test_what_is_not_there_is_said_and_exits_with_2(
    untouched: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["audit", str(untouched), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_directory_that_is_no_run_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(tmp_path)]) == 2
    assert "no training run" in capsys.readouterr().err
    assert main(["audit", str(tmp_path / "none")]) == 2


def test_a_run_of_which_nothing_is_recorded_yet_is_not_proved(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for stage in ("teacher", "student"):
        shutil.rmtree(run / "stages" / stage / "episodes")
    assert main(["audit", str(run)]) == 2
    assert "nothing can be proved" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["jsonl", "npz", "json"])
@pytest.mark.parametrize("damage", ["missing", "short", "empty", "other"])
def test_a_damaged_file_is_named_and_exits_with_2(
    run: Path, capsys: pytest.CaptureFixture[str], ending: str, damage: str
) -> None:
    path = run / "stages" / "teacher" / "episodes" / f"step-000001.{ending}"
    if damage == "missing":
        path.unlink()
    else:
        contents = {
            "short": path.read_bytes()[:-40],
            "empty": b"",
            "other": b'{"format": 1, "judged": [], "golden_answers": []}',
        }
        path.write_bytes(contents[damage])
    code = main(["audit", str(run)])
    error = capsys.readouterr().err
    if (ending, damage) == ("jsonl", "empty"):
        assert code == 1 and "the step has no such episode" in error
    else:
        assert code == 2 and path.name in error and len(error.splitlines()) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("weights_N"),
        lambda arrays: arrays.update(weights_N=arrays["weights_N"][:-1]),
        lambda arrays: arrays.update(weights_N=arrays["weights_N"][None]),
        lambda arrays: arrays.update(trainable_N=arrays["trainable_N"].astype(np.float32)),
        lambda arrays: arrays.update(lengths_S=-arrays["lengths_S"]),
        lambda arrays: arrays.update(role_S=arrays["role_S"][:-1]),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(run: Path, change) -> None:
    files = files_of(run, "teacher")
    change_arrays(files, change)
    with pytest.raises(UserError, match=r"step-000001\.npz: damaged or of another version"):
        audit_run(run)
    with pytest.raises(UserError, match=r"step-000001\.npz: damaged or of another version"):
        read_step(files.folder, 1)


def test_any_byte_changed_in_the_arrays_is_refused_or_named_or_harmless(run: Path) -> None:
    files = files_of(run, "teacher", 2)
    whole, before = files.arrays.read_bytes(), read_step(files.folder, 2)
    for place in np.random.default_rng(0).integers(0, len(whole), 60).tolist():
        files.arrays.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            found = audit_run(run, stage="teacher", step=2).violation
        except UserError:
            continue
        if found is None:
            signals = read_step(files.folder, 2).signals
            assert all((one.ids_T == other.ids_T).all() for one, other in zip(signals, before.signals, strict=True))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"format": 1', '"format": 2', "format 2, this version reads 1"),
        ('"squad"', '"squat"', "no scorer is named 'squat'"),
        ('"reduction"', '"reductoin"', "credit.reductoin"),
        ("{", "", "stage.json: not in the expected form"),
    ],
)
def test_a_description_of_a_stage_that_is_not_understood_exits_with_2(
    run: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    path = run / "stages" / "teacher" / "stage.json"
    path.write_text(path.read_text().replace(old, new, 1))
    assert main(["audit", str(run)]) == 2
    assert said in capsys.readouterr().err
