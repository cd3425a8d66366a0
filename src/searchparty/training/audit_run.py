"""The audit of a whole run: every recorded step of every stage that learned from episodes.

Knows run directories; what is checked in a step is in `audit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from searchparty.credit.plan import CreditPlan
from searchparty.errors import UserError
from searchparty.evaluation.scorers import scorer_named
from searchparty.files import read_json
from searchparty.training.audit import StepAudit, audit_step, totals
from searchparty.training.records import read_step, recorded_steps
from searchparty.training.run_directory import StageDirectory, TrainDirectory

OnStep = Callable[[str, int, int], None]
"""Told the stage, how many of its steps are done, and how many there are."""


@dataclass(frozen=True)
class StageAudit:
    """What was proved of one stage."""

    name: str
    kind: str
    steps: int
    """Steps that were recorded and looked at."""
    counts: StepAudit
    failed_step: int | None
    """The first step with a violation; the audit of the stage ends there."""


def audit_run(
    directory: Path, *, stage: str | None = None, step: int | None = None, on_step: OnStep | None = None
) -> list[StageAudit]:
    """Audit a run, or one of its stages, or one step.

    Raises:
        UserError: no training run there, no such stage or step, or a damaged file.
    """
    run = TrainDirectory(directory)
    if not run.is_run:
        raise UserError(f"{directory}: no training run here; give the directory that searchparty train wrote")
    names = [path.parent.name for path in sorted(run.path.glob("stages/*/stage.json"))]
    order = [name for name in run.read_recipe().stages if name in names]
    if stage is not None and stage not in order:
        raise UserError(f"{directory}: no stage {stage}; there are: {', '.join(order) or 'none yet'}")
    audits = [_audit_stage(run.stage(name), step, on_step) for name in order if stage in (None, name)]
    if step is not None and not any(audit.steps for audit in audits):
        raise UserError(f"{directory}: step {step} was not recorded; leave out --step to see what was")
    return audits


def _audit_stage(place: StageDirectory, only: int | None, on_step: OnStep | None) -> StageAudit:
    described = read_json(place.description, _check_description)
    name, kind = described["name"], described["kind"]
    if kind != "rl":
        return StageAudit(name, kind, 0, StepAudit(), None)
    steps = [step for step in recorded_steps(place.episodes) if only in (None, step)]
    failed: list[int] = []

    def walk() -> Iterator[StepAudit]:
        scorer = scorer_named(described["scorer"])
        for number, step in enumerate(steps, start=1):
            record = read_step(place.episodes, step)
            audit = audit_step(record, described["credit"], scorer, described["teacher_temperature"])
            if on_step is not None:
                on_step(name, number, len(steps))
            yield audit
            if audit.violation is not None:
                failed.append(step)
                return

    counts = totals(walk())
    return StageAudit(name, kind, len(steps), counts, failed[0] if failed else None)


def _check_description(value: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"name": str(value["name"]), "kind": str(value["kind"])}
    if described["kind"] == "rl":
        try:
            described["credit"] = CreditPlan.model_validate(value["credit"])
        except ValidationError as error:
            raise ValueError(f"credit: {error.errors()[0]['msg']}") from None
        described |= {"scorer": str(value["scorer"]), "teacher_temperature": float(value["teacher_temperature"])}
    return described
