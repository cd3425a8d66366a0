"""The audit: proves of every recorded step that each token was trained as its episode says, or names the first that was not.

`audit_step` is for the trainer, with what it holds in memory; `audit_run` is for anybody, with what is on disk. Reads what was
recorded, and computes again whatever can be. What no record can show is believed: the episodes' own sampled ids and
log-probabilities, what teacher, reference and critic said beyond its effect on the advantages, scores given from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import ValidationError

from searchparty.credit.evidence import EpisodeKey
from searchparty.credit.plan import CreditPlan
from searchparty.credit.types import SequenceKey
from searchparty.episodes.store import read_episodes
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.evaluation.scorers import Scorer, scorer_named
from searchparty.files import read_json
from searchparty.training.audit_credit import credit_faults, judgement_faults
from searchparty.training.audit_groups import attempt_faults, group_faults
from searchparty.training.audit_report import AuditReport, Proved, Rule, StageAudit, StepAudit, Violation, of_episode
from searchparty.training.audit_reports import report_faults
from searchparty.training.audit_sequences import Paired, pair, prefix_fault, sequence_faults
from searchparty.training.audit_transcripts import call_faults, span_fault
from searchparty.training.recorded_arrays import RecordedSequence, read_arrays
from searchparty.training.records import Judged, StepFiles, StepRecord, read_facts, recorded_steps

OnStep = Callable[[str, int, int], None]
"""Told the stage, how many of its steps are done, and how many there are."""


@dataclass(slots=True)
class RecordedStep:
    """What one step left, with its arrays as they are."""

    step: int
    episodes: Sequence[Episode]
    sequences: Sequence[RecordedSequence]
    golden_answers: Mapping[str, Sequence[str]]
    judged: Mapping[EpisodeKey, Sequence[Judged]]
    scores: Mapping[str, Mapping[SequenceKey, float]]


def read_recorded_step(folder: Path, step: int) -> RecordedStep:
    """Read a step without believing it. Raises UserError if a file is missing, or damaged in form."""
    files = StepFiles(folder, step)
    episodes, facts = list(read_episodes(files.episodes)), read_facts(files.facts)
    sequences = read_arrays(files.arrays)
    return RecordedStep(step, episodes, sequences, facts["golden_answers"], facts["judged"], facts["scores"])


def audit_step(
    record: StepRecord | RecordedStep,
    plan: CreditPlan,
    scorer: Scorer,
    teacher_temperature: float = 1.0,
    *,
    samples: int | None = None,
    tolerance: float = 0.0,
    first_only: bool = False,
) -> StepAudit:
    """Prove one step.

    Args:
        samples: attempts per question that were declared; None if that is not known.
        tolerance: relative difference of recomputed numbers that is taken for rounding; 0 wants equal bits, which the
            processor and the libraries that made them give.
        first_only: stop at the first violation.
    """
    step = _recorded(record) if isinstance(record, StepRecord) else record
    proved = Proved(steps=1, episodes=len(step.episodes))
    found = _violations(step, plan, scorer, teacher_temperature, samples, tolerance, proved)
    return StepAudit([replace(one, step=step.step) for one in islice(found, 1 if first_only else None)], proved)


def _violations(
    step: RecordedStep,
    plan: CreditPlan,
    scorer: Scorer,
    teacher_temperature: float,
    samples: int | None,
    tolerance: float,
    proved: Proved,
) -> Iterator[Violation]:
    """All checks, those first on which others rely. What relies on transcripts in order is left out if one is not."""
    out_of_order = [fault for fault in map(_episode_fault, step.episodes) if fault is not None]
    if out_of_order:
        yield from out_of_order
        return
    paired = Paired()
    yield from pair(step.episodes, step.sequences, plan, proved, paired)
    previous = None
    for one in paired.trained:
        yield from sequence_faults(one, plan, proved)
        if previous is None or one.history.call_key != previous.history.call_key:
            previous = one
        elif (fault := prefix_fault(previous, one)) is not None:
            yield fault
    for episode in step.episodes:
        for transcript in episode.agents:
            yield from call_faults(episode, transcript)
    yield from attempt_faults(step.episodes, samples)
    yield from group_faults(paired, plan, proved)
    for episode in step.episodes:
        yield from report_faults(episode, proved)
    yield from judgement_faults(step.episodes, step.golden_answers, step.judged, scorer, proved)
    yield from credit_faults(
        step.episodes, paired.trained, plan, step.judged, step.scores, teacher_temperature, tolerance, proved
    )


def _episode_fault(episode: Episode) -> Violation | None:
    """The first thing that is out of order in an episode as a whole."""
    for transcript in episode.agents:
        if (fault := span_fault(episode, transcript)) is not None:
            return fault
    exact = all(span.ids is not None for transcript in episode.agents for span in transcript.spans)
    if exact is not episode.token_exact:
        key = (episode.question_key, episode.sample)
        return of_episode(key, Rule.HISTORIES, "token_exact", episode.token_exact, exact)
    return None


def _recorded(record: StepRecord) -> RecordedStep:
    sequences = []
    for signal in record.signals:
        said, referred = record.teacher.get(signal.key), record.reference.get(signal.key)
        length = len(signal.ids_T)
        sequences.append(
            RecordedSequence(
                key=signal.key,
                role=signal.role,
                group=record.groups.get(signal.key, ""),
                ids_T=signal.ids_T,
                trainable_T=signal.trainable_T,
                old_logprobs_T=signal.old_logprobs_T,
                advantages_T=signal.advantages_T,
                weights_T=signal.weights_T,
                returns_T=signal.returns_T,
                values_T=signal.values_T,
                scored=said is not None,
                teacher_ids_T=np.zeros(length, np.int32) if said is None else said.ids_T,
                teacher_logprobs_T=np.zeros(length, np.float32) if said is None else said.logprobs_T,
                reference_ids_T=None if referred is None else referred.ids_T,
                reference_logprobs_T=None if referred is None else referred.logprobs_T,
            )
        )
    return RecordedStep(record.step, record.episodes, sequences, record.golden_answers, record.judged, record.scores)


def audit_run(
    path: Path, *, stage: str | None = None, step: int | None = None, tolerance: float = 0.0, on_step: OnStep | None = None
) -> AuditReport:
    """Prove every recorded step of a training run, or of one stage or one step of it, up to the first violation.

    Raises:
        UserError: no run, stage or step of that name; a file that is damaged in form; nothing was recorded at all.
    """
    folders = _stage_folders(path, stage)
    report = AuditReport(path)
    for folder in folders:
        description = read_json(folder / "stage.json", _check_description)
        audit = StageAudit(folder.name, description["kind"])
        report.stages.append(audit)
        steps = [one for one in recorded_steps(folder / "episodes") if step in (None, one)]
        if not steps:
            audit.note = "no step is recorded" if audit.kind == "rl" else "nothing is recorded of such a stage"
        for done, number in enumerate(steps, start=1):
            found = audit_step(
                read_recorded_step(folder / "episodes", number),
                description["credit"],
                description["scorer"],
                teacher_temperature=description["teacher_temperature"],
                samples=description["samples"],
                tolerance=tolerance,
                first_only=True,
            )
            audit.proved.add(found.proved)
            if found.violations:
                report.violation = replace(found.violations[0], stage=folder.name)
                return report
            if on_step is not None:
                on_step(folder.name, done, len(steps))
    if step is not None and not any(audit.proved.steps for audit in report.stages):
        raise UserError(f"{path}: step {step} is recorded in no stage; see stages/NAME/episodes for those that are")
    if any(audit.kind == "rl" for audit in report.stages) and not any(audit.proved.steps for audit in report.stages):
        raise UserError(
            f"{path}: no step is recorded yet, so nothing can be proved; wait for the first or use --resume to train"
        )
    return report


def _stage_folders(path: Path, stage: str | None) -> list[Path]:
    """The folders of the stages that were begun, in the order of the recipe."""
    recipe = path / "recipe.resolved.yaml"
    if not recipe.is_file() or not (path / "stages").is_dir():
        raise UserError(f"{path}: no training run; give the directory that searchparty train made")
    try:
        order = list(yaml.safe_load(recipe.read_text(encoding="utf-8"))["stages"])
    except (OSError, ValueError, TypeError, KeyError, yaml.YAMLError) as error:
        raise UserError(f"{recipe}: names no stages ({type(error).__name__}); was it edited by hand?") from None
    begun = [path / "stages" / name for name in order if (path / "stages" / name / "stage.json").is_file()]
    if stage is None:
        return begun
    if stage not in order:
        raise UserError(f"{path}: no stage {stage}; its stages are {', '.join(order)}")
    return [folder for folder in begun if folder.name == stage]


def _check_description(value: Any) -> dict[str, Any]:
    """What the audit must know of a stage. Raises ValueError or KeyError for another form."""
    if value["format"] != 1:
        raise ValueError(f"format {value['format']}, this version reads 1")
    description: dict[str, Any] = {"kind": str(value["kind"])}
    if description["kind"] == "rl":
        try:
            description["credit"] = CreditPlan.model_validate(value["credit"])
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"credit.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        description["scorer"] = scorer_named(value["scorer"])
        description["teacher_temperature"] = float(value["teacher_temperature"])
        description["samples"] = int(value["samples"])
    return description
