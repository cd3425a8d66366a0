"""From a run directory, of an evaluation or of a training, to its diagnosis. One episode is in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from searchparty.diagnosis.change_points import FALSE_ALARMS, fewest_values
from searchparty.diagnosis.facts import EpisodeFacts, facts_of
from searchparty.diagnosis.series import BehaviourChange, Series, changes_of, not_finite, series_of
from searchparty.diagnosis.summary import Diagnosis, diagnose
from searchparty.episodes.store import read_episodes
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import Scorer, scorer_named
from searchparty.evaluation.summary_file import read_summary
from searchparty.questions import load_questions
from searchparty.questions.types import Question
from searchparty.training.recipe import RLStage
from searchparty.training.records import StepFiles, read_facts, recorded_steps
from searchparty.training.run_directory import MetricsLog, StageDirectory, TrainDirectory, seed_runs

STEP_RESAMPLES = 2_000
"""Draws of the intervals of one training step: few, since there are many steps; for the same reason none for its roles."""
LATE_SHARE = 0.1
"""The last recorded steps that are taken together to say how a stage ended."""


@dataclass(frozen=True, slots=True)
class EvaluationDiagnosis:
    """One evaluation."""

    path: str
    whole: Diagnosis
    datasets: dict[str, Diagnosis]
    judged: bool = True
    """Whether any question has a golden answer. In the record of a served team none has; right and wrong then mean nothing."""
    not_played: int = 0
    """Episodes that an unfinished run lacks: a diagnosis is of those that there are, while the score counts these as wrong."""


@dataclass(frozen=True, slots=True)
class StepDiagnosis:
    """The episodes of one recorded step."""

    step: int
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class StageDiagnosis:
    """One rl stage of a training run."""

    name: str
    steps: list[StepDiagnosis]
    """Recorded ones; empty if none was kept."""
    late: Diagnosis | None
    """The last tenth of the recorded steps taken together."""
    late_steps: list[int]
    series: list[Series]
    changes: list[BehaviourChange]
    fewest_steps: int
    """A shorter series cannot show any change."""
    alarms: list[str]
    """What the training said aloud while it ran, each with its step."""
    notes: list[str]
    """What could not be read, one line each."""


@dataclass(frozen=True, slots=True)
class TrainingDiagnosis:
    """A training run: its rl stages, and its evaluations."""

    path: str
    stages: list[StageDiagnosis]
    evaluations: dict[str, EvaluationDiagnosis]


def diagnose_run(path: Path, *, false_alarms: float = FALSE_ALARMS) -> EvaluationDiagnosis | TrainingDiagnosis:
    """Diagnose whatever run lies there.

    Raises:
        UserError: there is none, or nothing was recorded yet.
    """
    if TrainDirectory(path).is_run:
        return diagnose_training(path, false_alarms=false_alarms)
    if seeds := seed_runs(path):
        names = ", ".join(one.name for one in seeds)
        raise UserError(f"{path}: holds the runs of several seeds; diagnose one of them: {names}")
    return diagnose_evaluation(path)


def diagnose_evaluation(path: Path) -> EvaluationDiagnosis:
    """Diagnose an evaluation, finished or not. Raises UserError if nothing was recorded."""
    directory = RunDirectory(path)
    recipe = directory.read_recipe()
    scorer = scorer_named(_scored_by(directory) or recipe.scorer)
    questions = {question.key: question for question in directory.read_questions()}

    def read(episode: Episode) -> EpisodeFacts:
        if episode.question_key not in questions:
            raise UserError(f"{directory.episodes_file}: an episode of {episode.question_key}, which the run did not ask")
        return facts_of(episode, questions[episode.question_key], scorer)

    facts = list(directory.latest(read).values())
    if not facts:
        raise UserError(f"{path}: no episode was recorded yet; run or resume it first")
    by_dataset: dict[str, list[EpisodeFacts]] = {}
    for one in facts:
        by_dataset.setdefault(one.dataset, []).append(one)
    names = sorted(by_dataset) if len(by_dataset) > 1 else []
    datasets = {name: diagnose(by_dataset[name]) for name in names}
    judged = any(question.golden_answers for question in questions.values())
    not_played = max(0, len(questions) * recipe.samples - len(facts))
    return EvaluationDiagnosis(str(path), diagnose(facts), datasets, judged, not_played)


def _scored_by(directory: RunDirectory) -> str | None:
    """The scorer of a run's numbers, which may have been scored again by another one; None before it was scored."""
    return read_summary(directory)["scorer"] if directory.summary_file.is_file() else None


def diagnose_training(path: Path, *, false_alarms: float = FALSE_ALARMS) -> TrainingDiagnosis:
    """Diagnose every rl stage and every evaluation of a training run, as far as they came."""
    directory = TrainDirectory(path)
    stages = diagnose_stages(path, false_alarms=false_alarms)
    evaluations = {
        name: diagnose_evaluation(directory.evaluation(name))
        for name in directory.read_recipe().stages
        if _has_episodes(directory.evaluation(name))
    }
    if not stages and not evaluations:
        raise UserError(f"{path}: no step and no evaluation was recorded yet; run or resume it first")
    return TrainingDiagnosis(str(path), stages, evaluations)


def _has_episodes(path: Path) -> bool:
    episodes = RunDirectory(path).episodes_file
    return episodes.is_file() and episodes.stat().st_size > 0


def diagnose_stages(path: Path, *, false_alarms: float = FALSE_ALARMS) -> list[StageDiagnosis]:
    """The rl stages of a training run of which anything was recorded."""
    directory = TrainDirectory(path)
    lines = list(MetricsLog(directory.metrics_file).lines())
    stages = [
        _stage(name, spec, directory.stage(name), [line for line in lines if line["stage"] == name], false_alarms)
        for name, spec in directory.read_recipe().stages.items()
        if isinstance(spec, RLStage)
    ]
    return [stage for stage in stages if stage.steps or stage.series]


def _stage(name: str, spec: RLStage, place: StageDirectory, lines: list[dict[str, Any]], false_alarms: float) -> StageDiagnosis:
    notes: list[str] = []
    questions = _questions(spec, notes)
    numbers = [step for step in recorded_steps(place.episodes) if StepFiles(place.episodes, step).facts.is_file()]
    late_from = len(numbers) - max(1, round(LATE_SHARE * len(numbers)))
    steps, late = [], []
    for place_in_order, number in enumerate(numbers):
        facts = list(_step_facts(StepFiles(place.episodes, number), questions, scorer_named(spec.scorer)))
        if facts:
            steps.append(StepDiagnosis(number, diagnose(facts, resamples=STEP_RESAMPLES, roles=False)))
        if place_in_order >= late_from:
            late += facts
    series = series_of(lines) + _evidence_series(steps)
    return StageDiagnosis(
        name=name,
        steps=steps,
        late=diagnose(late) if late else None,
        late_steps=numbers[late_from:] if numbers else [],
        series=series,
        changes=changes_of(series, false_alarms=false_alarms),
        fewest_steps=fewest_values(false_alarms / max(1, len(series))),
        alarms=[f"step {line['step']}: {alarm}" for line in lines for alarm in line.get("alarms", [])],
        notes=[*notes, *not_finite(lines)],
    )


def _step_facts(files: StepFiles, questions: Mapping[str, Question], scorer: Scorer) -> Iterator[EpisodeFacts]:
    golden = read_facts(files.facts)["golden_answers"]
    for episode in read_episodes(files.episodes):
        key = episode.question_key
        if key not in golden:
            raise UserError(f"{files.facts}: no golden answers of {key}; the step's files do not belong together")
        question = questions.get(key) or Question(key, episode.question, tuple(golden[key]), episode.dataset)
        yield replace(facts_of(episode, question, scorer), step=files.step)


def _questions(spec: RLStage, notes: list[str]) -> dict[str, Question]:
    """The stage's questions, for their supporting passages; without their file the evidence is followed by answers alone."""
    try:
        return {question.key: question for question in load_questions(spec.questions, spec.format).questions}
    except UserError as error:
        notes.append(
            "supporting passages are unknown, so evidence is followed by golden answers alone (diagnose from where the run was "
            f"trained): {error.lines[0]}"
        )
        return {}


def _evidence_series(steps: list[StepDiagnosis]) -> list[Series]:
    """What only episodes tell, over the recorded steps."""
    found: dict[str, Series] = {}
    for one in steps:
        evidence, diagnosis = one.diagnosis.evidence, one.diagnosis
        numbers = {"searches that repeat an earlier one": diagnosis.repeated_searches}
        if evidence is not None:
            numbers["golden passages found"] = evidence.found
            for name, share in (("reported", evidence.reported), ("selected", evidence.selected)):
                if share is not None:
                    numbers[f"golden passages {name}"] = share
        for name, value in numbers.items():
            series = found.setdefault(name, Series("step", name, "from recorded episodes, in %", [], []))
            series.steps.append(one.step)
            series.values.append(value)
    return list(found.values())
