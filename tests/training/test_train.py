"""A run of both stages, and what it leaves behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from training_factories import Notes, episode_ids, eval_stage, metrics, opd_stage, recipe, rl_stage, run, small_stage

from searchparty.config.load import parse_recipe
from searchparty.config.recipe import EvalRecipe, ModelSpec
from searchparty.credit.types import SequenceKey
from searchparty.errors import UserError
from searchparty.evaluation.run import evaluate
from searchparty.models.loading import load_model
from searchparty.models.model_folders import trained_model
from searchparty.training.listening import TrainingStopped
from searchparty.training.playing import WithPolicy
from searchparty.training.records import read_step, recorded_steps


@pytest.fixture(scope="module")
def both_stages(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: a teacher, a student, and two evaluations."""
    folder = tmp_path_factory.mktemp("runs") / "both"
    run(
        recipe(
            teacher=rl_stage(world, development={"questions": str(world / "questions-dev.jsonl"), "every": 1, "limit": 3}),
            student=opd_stage(world),
            base=eval_stage(world, team="hierarchical"),
            trained=eval_stage(world, team="hierarchical", policy="stage:student", baseline="base"),
        ),
        folder,
    )
    return folder


def test_every_step_of_both_stages_is_in_the_metrics(both_stages: Path) -> None:
    steps = [(line["stage"], line["step"]) for line in metrics(both_stages) if line["kind"] == "step"]
    assert steps == [("teacher", 1), ("teacher", 2), ("student", 1), ("student", 2)]


def test_metrics_count_the_tokens_of_every_role_that_learns(both_stages: Path) -> None:
    student = [line for line in metrics(both_stages) if line["stage"] == "student"]
    assert all(line["roles"][role]["tokens"] > 0 for line in student for role in ("leader", "searcher", "answerer"))
    assert all(line["roles"]["searcher"]["scored_tokens"] == line["roles"]["searcher"]["tokens"] for line in student)
    assert all(line["datasets"]["all"]["episodes"] == 6 for line in student)


def test_sampler_and_learner_agree_about_every_token(both_stages: Path) -> None:
    for line in metrics(both_stages):
        if line["kind"] == "step":
            updates = [role["update"] for role in line["roles"].values() if role["update"] is not None]
            assert max(update["mismatch_max"] for update in updates if update["mismatch_max"] is not None) < 1e-4


def test_the_student_starts_from_the_original_model_and_not_from_the_teacher(both_stages: Path) -> None:
    record = read_step(both_stages / "stages/student/episodes", 1)
    assert {transcript.model.split(" ")[0] for episode in record.episodes for transcript in episode.agents} == {"tiny"}


def test_the_teacher_scores_the_ids_that_the_student_sampled(both_stages: Path) -> None:
    record = read_step(both_stages / "stages/student/episodes", 1)
    signals = [signal for signal in record.signals if signal.role == "searcher"]
    assert signals
    for signal in signals:
        assert np.array_equal(record.teacher[signal.key].ids_T, signal.ids_T)
        expected = 0.01 * (record.teacher[signal.key].logprobs_T - signal.old_logprobs_T)
        assert np.allclose(signal.advantages_T, np.where(signal.trainable_T, expected, 0), atol=1e-6)


def test_episodes_of_a_question_are_one_group_and_candidates_of_a_call_another(both_stages: Path) -> None:
    record = read_step(both_stages / "stages/student/episodes", 2)
    for signal in record.signals:
        group = record.groups[signal.key]
        if signal.role == "leader":
            assert group == f"episodes of {signal.key.question_key}"
        elif signal.role == "answerer":
            assert group.startswith(f"candidates of {signal.key.question_key} sample {signal.key.sample} answerer.1 call ")
        else:
            assert group == ""


def test_the_best_checkpoint_by_development_score_is_the_stages_model(both_stages: Path) -> None:
    scores = {line["step"]: line["score"] for line in metrics(both_stages) if line["kind"] == "development"}
    result = json.loads((both_stages / "stages/teacher/result.json").read_text())
    assert set(scores) == {0, 1, 2}
    assert result["score"] == max(scores[1], scores[2])


def test_a_trained_stage_can_be_evaluated_as_a_model(both_stages: Path, world: Path, tmp_path: Path) -> None:
    asked = {key: value for key, value in eval_stage(world, team="chained").items() if key not in ("kind", "policy")}
    summary = asyncio.run(
        evaluate(parse_recipe(EvalRecipe, {**asked, "model": f"run:{both_stages}#teacher"}, "test"), tmp_path / "eval")
    )
    assert summary.quality["macro"].questions == 3
    assert trained_model(f"run:{both_stages}").parent.parent.parent.name == "student"


def test_a_run_without_that_stage_is_named(both_stages: Path) -> None:
    with pytest.raises(UserError, match="no model of that stage; finished stages with a model: student, teacher"):
        trained_model(f"run:{both_stages}#leader")


def test_the_report_pairs_each_evaluation_with_its_baseline(both_stages: Path) -> None:
    rows = json.loads((both_stages / "report.json").read_text())
    assert [row["title"] for row in rows] == ["base", "trained"]
    assert rows[1]["difference"] == pytest.approx(rows[1]["exact_match"] - rows[0]["exact_match"])
    low, high = rows[1]["difference_interval"]
    assert low <= rows[1]["difference"] <= high
    report = (both_stages / "report.md").read_text()
    assert "| trained |" in report and "Overlap of teacher (24 questions) with base (3): 0 of these" in report
    assert json.loads((both_stages / "overlap.json").read_text())[0]["same_text"] == 0


def test_two_runs_of_one_recipe_are_equal_to_the_last_bit_whatever_is_evaluated_in_between(
    both_stages: Path, world: Path, tmp_path: Path
) -> None:
    run(recipe(teacher=rl_stage(world), student=opd_stage(world, teacher="tiny")), tmp_path / "run")
    first, second = ([line for line in metrics(folder) if line["kind"] == "step"] for folder in (both_stages, tmp_path / "run"))
    assert first[:2] == second[:2]
    assert episode_ids(both_stages, "teacher") == episode_ids(tmp_path / "run", "teacher")


def test_another_seed_gives_another_run(both_stages: Path, world: Path, tmp_path: Path) -> None:
    run(recipe(1, teacher=rl_stage(world, steps=1)), tmp_path / "run")
    steps = len(episode_ids(tmp_path / "run", "teacher"))
    assert episode_ids(tmp_path / "run", "teacher") != episode_ids(both_stages, "teacher")[:steps]


def test_a_finished_run_is_not_begun_again_by_mistake(both_stages: Path, world: Path) -> None:
    with pytest.raises(UserError, match="already exists; add --resume to continue it or --overwrite"):
        run(recipe(teacher=rl_stage(world)), both_stages)


def test_only_steps_that_are_to_be_kept_are_recorded(world: Path, tmp_path: Path) -> None:
    run(recipe(teacher=small_stage(world, steps=3, record_every=2, alarms={"no_signal": "ignore"})), tmp_path / "run")
    assert recorded_steps(tmp_path / "run/stages/teacher/episodes") == [2, 3]


def test_numbers_that_are_not_finite_stop_the_run_and_keep_the_last_good_state(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from searchparty.learning.learner import Learner

    whole = Learner.update

    def poisoned(self: Learner, signals: list) -> object:  # type: ignore[type-arg]
        if self.updates == 1:
            signals[0].advantages_T[signals[0].trainable_T] = np.inf
        return whole(self, signals)

    monkeypatch.setattr(Learner, "update", poisoned)
    with pytest.raises(TrainingStopped, match=r"stage teacher, step 2: non-finite .* in .* sample \d, \w+\.1"):
        run(recipe(teacher=small_stage(world)), tmp_path / "run")
    monkeypatch.undo()
    assert [folder.name for folder in (tmp_path / "run/stages/teacher/checkpoints").iterdir()] == ["step-000001"]
    run(recipe(teacher=small_stage(world)), tmp_path / "run", resume=True)
    assert [line["step"] for line in metrics(tmp_path / "run")] == [1, 2]


def test_a_role_without_trainable_tokens_stops_the_run_before_anything_is_learned(world: Path, tmp_path: Path) -> None:
    """Every turn is cut short after two tokens, so that the Answerer never acts."""
    stage = rl_stage(world, sampling={"max_tokens": 2}, alarms={"silence": "stop"})
    for resume in (False, True):
        with pytest.raises(TrainingStopped, match=r"step 1: stopped by an alarm: silence: no_trainable_tokens: answerer"):
            run(recipe(teacher=stage), tmp_path / "run", resume=resume)
        assert not (tmp_path / "run/stages/teacher/checkpoints").exists()
        assert recorded_steps(tmp_path / "run/stages/teacher/episodes") == [1]
    notes = Notes()
    warned = rl_stage(world, sampling={"max_tokens": 2}, alarms={"silence": "warn"})
    run(recipe(teacher=warned), tmp_path / "warned", listener=notes)
    assert any("no_trainable_tokens: answerer" in message for message in notes.messages)


def test_keys_of_recorded_signals_name_their_sequences(both_stages: Path) -> None:
    record = read_step(both_stages / "stages/teacher/episodes", 1)
    first = record.episodes[0]
    assert SequenceKey(first.question_key, first.sample, first.agents[0].agent, 0) in {one.key for one in record.signals}


def test_golden_answers_that_no_file_can_hold_do_not_end_a_run(world: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (world / "questions-train.jsonl").read_text().splitlines()]
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps({**line, "golden_answers": ["half\ud800"]}) + "\n" for line in lines))
    directory = run(recipe(teacher=small_stage(world, steps=1, questions=str(questions))), tmp_path / "run")
    assert {
        answer for answers in read_step(directory.stage("teacher").episodes, 1).golden_answers.values() for answer in answers
    } == {"half\ufffd"}


def test_a_role_that_names_the_policys_model_keeps_it_as_it_is_while_the_policy_learns() -> None:
    spec = ModelSpec(spec="scripted:default")
    policy = load_model(spec.spec)
    models = WithPolicy(policy)
    assert models.playing(None, spec) is policy
    assert models.playing(spec, spec) is not policy
    assert models.playing(spec, spec) is models.playing(spec, spec)
