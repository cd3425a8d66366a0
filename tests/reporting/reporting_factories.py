"""Run directories of scripted teams, scored as `searchparty eval` scores them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from playing import PARIS, good_lines, play_lines
from searchparty.config.recipe import EvalRecipe
from searchparty.episodes.store import EpisodeWriter
from searchparty.evaluation.run import score_run
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import SCORERS
from searchparty.files import write_json
from searchparty.questions import write_questions
from searchparty.questions.types import Question
from searchparty.teams.chained import Chained
from searchparty.training.run_directory import MetricsLog, TrainDirectory

QUESTIONS = [
    replace(PARIS, id=str(number), dataset=dataset, supporting_titles=("Title 1",))
    for dataset in ("nq", "world")
    for number in range(2)
]


def write_evaluation(
    path: Path,
    *,
    right: int,
    questions: list[Question] = QUESTIONS,
    identity: str = "script",
    said: str = "Lyon",
    **recipe: Any,
) -> Path:
    """A finished evaluation of the chained team, in which the first `right` questions were answered rightly."""
    run = RunDirectory(path)
    write_questions(path.parent / "questions.jsonl", questions)
    given = {"team": "chained", "model": "scripted:default", "questions": path.parent / "questions.jsonl", "index": "none"}
    made = EvalRecipe.model_validate({**given, **recipe})
    models = {"searcher": identity, "answerer": identity}
    run.begin(made, questions, {"questions": {}, "models": models, "searchparty": "0", "packages": {}})
    with EpisodeWriter(run.episodes_file) as writer:
        for number, question in enumerate(questions):
            answer = "Paris" if number < right else said
            lines = good_lines(
                answerer=[f"<answer>{answer}</answer>"], searcher=["<search>x</search>", f"<report>{said}</report>"]
            )
            writer.write(play_lines(Chained(), lines, question=question))
    score_run(run, made, SCORERS["squad"])
    return path


def write_finished_training(path: Path, team: str = "chained", credit: str = "chained-rl", teacher: str | None = None) -> Path:
    """One rl stage of 60 steps whose team stops searching half way, and an evaluation of its model."""
    path.mkdir()
    directory, questions = TrainDirectory(path), path.parent / "train-questions.jsonl"
    write_questions(questions, QUESTIONS)
    student = {"kind": "rl", "policy": "tiny", "team": team, "credit": credit, "teacher": teacher, "steps": 60}
    test = {"kind": "eval", "policy": "stage:student", "team": "chained", "title": "the student"}
    stages = {"student": {**student, "questions": str(questions)}, "test": {**test, "questions": str(questions)}}
    directory.recipe_file.write_text(json.dumps({"name": "small", "seed": 3, "stages": stages}))
    model = "stages/student/checkpoints/step-000060/model"
    write_json(directory.environment_file, {"format": 1, "searchparty": "0", "inputs": {"student": {"questions": "abc123"}}})
    result = directory.stage("student").result
    result.parent.mkdir(parents=True)
    result.write_text(json.dumps({"format": 1, "kind": "rl", "model": model, "step": 60, "score": None}))
    metrics = MetricsLog(directory.metrics_file)
    for step in range(1, 61):
        searches = 2.0 if step <= 30 else 0.0
        measures = {"no_search": float(searches == 0), "searches": searches, "exact_match": 0.5, "answered": 1.0}
        roles = {"searcher": {"update": {"entropy": 1.0 + step % 3, "approx_kl": 0.1, "clip_fraction": 0.0}}}
        metrics.append({"stage": "student", "step": step, "kind": "step", "datasets": {"all": measures}, "roles": roles})
    write_evaluation(directory.evaluation("test"), right=2, identity=f"{path / model} sha256:77")
    return path
