"""The diagnosis of a training run: the paper's collapse is found, and a run in which nothing changes gives no alarm."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from diagnosis_factories import play_steps, write_training

from searchparty.cli.main import main
from searchparty.diagnosis.evidence import Interface
from searchparty.diagnosis.reading import StageDiagnosis, TrainingDiagnosis, diagnose_run
from searchparty.diagnosis.series import changes_of, not_finite, series_of
from searchparty.diagnosis.wording import change_in_words, course_in_words
from searchparty.errors import UserError
from searchparty.evaluation.intervals import wilson_interval
from searchparty.retrieval.bm25 import BM25Index
from searchparty.training.run_directory import MetricsLog, TrainDirectory
from searchparty.world.types import World


def collapse(step: int) -> float:
    """The chance that a Searcher forgets to search: the paper's, from step 300 to 400."""
    return float(np.interp(step, [300, 400], [0.005, 1.0]))


@pytest.fixture(scope="module")
def collapsed(world: World, home: Path, index: BM25Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    played = play_steps(world, index, collapse, range(10, 601, 10))
    return write_training(tmp_path_factory.mktemp("runs") / "collapsed", world, home / "world", played)


def student(path: Path, **options: float) -> StageDiagnosis:
    found = diagnose_run(path, **options)
    assert isinstance(found, TrainingDiagnosis)
    return found.stages[0]


def test_the_papers_collapse_is_found_between_steps_300_and_400(collapsed: Path) -> None:
    change = next(one for one in student(collapsed).changes if one.name == "episodes without a search")
    assert 300 <= change.after_step < change.by_step <= 400
    assert change.before < 0.1 and change.after == 1.0


def test_the_collapse_is_blamed_on_the_searching_although_the_workflow_completes(collapsed: Path) -> None:
    stage = student(collapsed)
    assert stage.late is not None
    assert stage.late.no_search == 1.0
    assert stage.late.losses[0].interface is Interface.NO_SEARCH
    assert stage.late.evidence is not None and stage.late.evidence.found == 0
    names = {one.name for one in stage.changes}
    assert {"searches per episode", "golden passages found", "golden passages selected"} <= names
    assert "episodes with a well-formed answer" not in names


def test_the_command_says_it_in_words_with_episodes_to_read(collapsed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(collapsed)]) == 0
    said = capsys.readouterr().out
    assert "Fails most at no_search" in said
    assert "episodes without a search rose from" in said
    example = next(line for line in said.splitlines() if line.startswith("no_search: step "))
    assert "#" in example
    assert main(["diagnose", str(collapsed), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["stages"][0]["late"]["losses"][0]["interface"] == "no_search"


def test_the_episodes_that_it_names_can_be_read(collapsed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage = student(collapsed)
    assert stage.late is not None
    step, _, name = stage.late.losses[0].examples[0].removeprefix("step ").partition(": ")
    question = name.partition("#")[0]
    assert main(["show", str(collapsed), "--step", step, "--question", question]) == 0
    assert f"{question} · sample 0" in capsys.readouterr().out
    assert main(["show", str(collapsed), "--stage", "student", "--step", step]) == 0
    assert "10 episodes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "give --step; recorded: 10, 20, 30"),
        (("--step", "15"), "step 15 of student was not recorded"),
        (("--stage", "teacher", "--step", "10"), "no episodes of a stage teacher; recorded stages: student (steps 10 to 600)"),
    ],
)
def test_a_step_that_is_not_there_is_refused_with_what_there_is(
    words: tuple[str, ...], line: str, collapsed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(collapsed), *words]) == 2
    assert line in capsys.readouterr().err


def test_a_team_that_stays_as_it_is_gives_no_alarm(world: World, home: Path, index: BM25Index, tmp_path: Path) -> None:
    played = play_steps(world, index, lambda _: 0.1, range(10, 401, 10), questions=4)
    assert student(write_training(tmp_path / "steady", world, home / "world", played)).changes == []


def test_without_the_questions_file_evidence_is_followed_by_answers_and_said_so(
    world: World, index: BM25Index, tmp_path: Path
) -> None:
    played = play_steps(world, index, lambda _: 0.0, [1], questions=4)
    stage = student(write_training(tmp_path / "run", world, tmp_path / "gone", played))
    assert "golden answers alone" in stage.notes[0] and "gone" in stage.notes[0]
    assert stage.late is not None and stage.late.evidence is None


def test_lines_without_a_number_leave_a_gap_and_no_more() -> None:
    lines = [
        {"kind": "step", "step": step, "datasets": {"all": {"searches": 2.0 if step < 40 else 0.0}}, "roles": {"leader": roles}}
        for step, roles in ((step, {"update": {"entropy": 0.5}} if step % 2 else {"update": None}) for step in range(80))
    ]
    searches, entropy = series_of(lines)
    assert entropy.name == "entropy of leader" and entropy.steps == list(range(1, 80, 2))
    (change,) = changes_of([searches, entropy])
    assert (change.name, change.after_step, change.by_step) == ("searches per episode", 39, 40)


def test_what_is_no_finite_number_is_a_gap_that_is_told() -> None:
    lines = [
        {"kind": "step", "step": step, "datasets": {"all": {"searches": math.nan if step in (7, 9) else 2.0}}}
        for step in range(60)
    ]
    (searches,) = series_of(lines)
    assert len(searches.values) == 58 and not changes_of([searches])
    (told,) = not_finite(lines)
    assert told.startswith("searches per episode: no finite number at 2 steps, the first of them step 7")


@pytest.mark.parametrize("damage", ['"datasets": []', '"roles": 3', '"watched": null', '"step": "x"'])
def test_a_line_of_metrics_of_another_form_is_refused_with_its_number(tmp_path: Path, damage: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(f'{{"stage": "s", "kind": "step", "step": 1, {damage}}}\n')
    with pytest.raises(UserError, match=r"metrics\.jsonl:1: no line of metrics"):
        list(MetricsLog(tmp_path / "metrics.jsonl").lines())


def test_a_stationary_run_gives_an_alarm_no_more_often_than_stated_all_its_series_together() -> None:
    draw, runs, alarms = np.random.default_rng(5), 300, 0
    for _ in range(runs):
        lines = []
        for step in range(120):
            difficulty = draw.normal()
            measures = {"no_search": draw.binomial(20, 0.2) / 20, "searches": 2 + difficulty, "exact_match": draw.random()}
            update = {"entropy": draw.gamma(2), "approx_kl": draw.lognormal(sigma=2), "clip_fraction": draw.random()}
            roles = {"leader": {"update": update}, "searcher": {"update": {"entropy": 1 + difficulty}}}
            lines.append({"kind": "step", "step": step, "datasets": {"all": measures}, "roles": roles})
        alarms += bool(changes_of(series_of(lines), false_alarms=0.1))
    assert wilson_interval(alarms, runs, confidence=0.99).low <= 0.1


def test_a_change_too_small_to_matter_is_not_told() -> None:
    def course(by: float) -> list[dict[str, object]]:
        shares = [0.2] * 50 + [0.2 + by] * 50
        return [
            {"kind": "step", "step": step, "datasets": {"all": {"no_search": share}}} for step, share in enumerate(shares)
        ]  # fmt: skip

    assert not changes_of(series_of(course(0.04)))
    assert changes_of(series_of(course(0.06)))


def test_alarms_of_the_training_are_told_with_their_steps(
    world: World, home: Path, index: BM25Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_training(tmp_path / "run", world, home / "world", play_steps(world, index, lambda _: 0.0, [1], questions=2))
    with TrainDirectory(run).metrics_file.open("a") as stream:
        for step in range(2, 9):
            stream.write(json.dumps({"stage": "student", "step": step, "kind": "step", "alarms": ["jump: rose"]}) + "\n")
    assert student(run).alarms == [f"step {step}: jump: rose" for step in range(2, 9)]
    assert main(["diagnose", str(run)]) == 0
    said = capsys.readouterr().out
    assert "Alarm at step 2: jump: rose" in said and "2 more alarms" in said


def test_a_course_says_whether_nothing_changed_or_too_little_was_seen(collapsed: Path) -> None:
    stage = student(collapsed)
    assert course_in_words(stage)[0] == change_in_words(stage.changes[0])
    assert course_in_words(replace(stage, changes=[])) == ["No change of behaviour is shown over 60 steps."]
    short = replace(stage, changes=[], fewest_steps=61)
    assert course_in_words(short) == ["60 steps are too few to tell whether behaviour changed: 61 are needed."]


def test_what_is_no_run_or_a_run_of_several_seeds_is_refused_in_a_line(tmp_path: Path, collapsed: Path) -> None:
    with pytest.raises(UserError, match="no run here"):
        diagnose_run(tmp_path)
    (tmp_path / "seed-1").symlink_to(collapsed)
    with pytest.raises(UserError, match="several seeds; diagnose one of them: seed-1"):
        diagnose_run(tmp_path)
    assert main(["diagnose", str(collapsed), "--false-alarms", "2"]) == 2
