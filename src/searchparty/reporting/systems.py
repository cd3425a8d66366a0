"""The systems that a report is about: finished evaluations, those of training runs among them, and the trainings themselves.

Reads finished runs; computes no statistic of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from searchparty.diagnosis.reading import EvaluationDiagnosis, StageDiagnosis, diagnose_evaluation, diagnose_stages
from searchparty.errors import UserError
from searchparty.evaluation.compared_runs import usd_per_episode
from searchparty.evaluation.estimates import Estimate
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.run_folder import flat, read_document
from searchparty.evaluation.summary_file import read_summary
from searchparty.training.recipe import EvalStage, TrainRecipe
from searchparty.training.run_directory import TrainDirectory, seed_runs

COMPARED = ("team", "attempts", "scorer", "retriever", "sampling", "protocol", "questions", "searchparty")
"""Settings of which a difference between systems may be no difference in quality."""


@dataclass(frozen=True)
class System:
    """One finished evaluation."""

    title: str
    """Unique in a report."""
    path: Path
    summary: dict[str, Any]
    """As `summary.json` has it."""
    setting: dict[str, str]
    """What its numbers depend on, in words; equal keys in all systems."""
    departures: list[str]
    """What it did otherwise than its protocol says."""
    diagnosis: EvaluationDiagnosis
    usd: Estimate | None
    """Mean cost of an episode; None where no price is known."""
    not_token_exact: bool
    """Whether a model exchanged text only."""

    @property
    def samples(self) -> int:
        """Attempts per question."""
        return int(self.summary["samples"])


@dataclass(frozen=True)
class Training:
    """One training run."""

    title: str
    path: Path
    recipe: TrainRecipe
    stages: list[StageDiagnosis]
    """Its rl stages of which anything was recorded."""


@dataclass
class Gathered:
    """Everything that was named on the command line, in its order."""

    systems: list[System] = field(default_factory=list)
    trainings: list[Training] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is missing, one line each."""


def gather(paths: Sequence[Path]) -> Gathered:
    """Read evaluations, training runs, and directories with the runs of several seeds, which stay apart.

    Raises:
        UserError: one line for each path that is no run, or an evaluation that was not finished.
    """
    found = Gathered()
    faults: list[str] = []
    for path in dict.fromkeys(paths):
        try:
            for one in seed_runs(path) or [path]:
                if TrainDirectory(one).is_run:
                    _add_training(found, one)
                else:
                    found.systems.append(read_system(one, one.resolve().name))
        except UserError as error:
            faults += error.lines
    if faults:
        raise UserError(*faults)
    found.systems = _with_unique_titles(found.systems)
    return found


def read_system(path: Path, title: str) -> System:
    """One finished evaluation. Raises UserError if it is none or not finished."""
    directory = RunDirectory(path)
    recipe = directory.read_recipe()
    if not directory.summary_file.is_file():
        raise UserError(f"{path}: was not finished; resume it, or score what is there: searchparty score {path} --unfinished")
    environment = directory.read_environment()
    summary = read_summary(directory)
    document = flat(read_document(directory.recipe_file))
    setting = {
        "team": ", ".join(
            [recipe.team.name, *(f"{key[5:]} {value}" for key, value in document.items() if _is_team_option(key))]
        ),
        "models": _distinct(environment.get("models")),
        "questions": f"{recipe.questions.name}, sha256 {environment['questions'].get('asked_sha256')}",
        "attempts": str(recipe.samples),
        "scorer": str(summary["scorer"]),
        "retriever": str(environment.get("retriever")),
        "sampling": ", ".join(f"{key[9:]} {value}" for key, value in document.items() if key.startswith("sampling.")),
        "protocol": _protocol(environment.get("protocol")),
        "seed": str(recipe.seed),
        "prompts": _distinct(environment.get("prompts")),
        "searchparty": str(environment.get("searchparty")),
        "packages": ", ".join(f"{name} {version}" for name, version in environment["packages"].items()),
        "prices": str(recipe.prices or "none"),
    }
    protocol = summary["provenance"].get("protocol") or environment.get("protocol") or {}
    return System(
        title=title,
        path=path,
        summary=summary,
        setting=setting,
        departures=[str(line) for line in protocol.get("departures") or ()],
        diagnosis=diagnose_evaluation(path),
        usd=usd_per_episode(path),
        not_token_exact=summary["behaviour"]["all"]["unique_input_tokens"] is None,
    )


def differing_settings(systems: Sequence[System]) -> list[str]:
    """Which of the compared settings are not the same in all systems."""
    return [key for key in COMPARED if len({system.setting[key] for system in systems}) > 1]


def _with_unique_titles(systems: list[System]) -> list[System]:
    """The titles as they are, with their paths where two systems share one."""
    often = Counter(system.title for system in systems)
    return [
        system if often[system.title] == 1 else replace(system, title=f"{system.title} ({system.path})") for system in systems
    ]  # fmt: skip


def _add_training(found: Gathered, path: Path) -> None:
    recipe = TrainDirectory(path).read_recipe()
    for name, spec in recipe.stages.items():
        if isinstance(spec, EvalStage):
            place = TrainDirectory(path).evaluation(name)
            try:
                found.systems.append(read_system(place, spec.title or name))
            except UserError as error:
                found.notes.append(f"evaluation {name} is left out: {error.lines[0]}")
    found.trainings.append(Training(str(path), path, recipe, diagnose_stages(path)))


def _protocol(said: Any) -> str:
    if not isinstance(said, dict) or not said:
        return "none"
    content = f", sha256 {str(said['sha256'])[:16]}" if said.get("sha256") else ""
    return f"{said.get('name')} version {said.get('version')}{content}"


def _is_team_option(key: str) -> bool:
    return key.startswith("team.") and key != "team.name"


def _distinct(by_role: Any) -> str:
    """Role to something, as text; said once where all roles have the same."""
    if not isinstance(by_role, dict) or not by_role:
        return "unknown"
    values = {str(value) for value in by_role.values()}
    return values.pop() if len(values) == 1 else "; ".join(f"{role}: {value}" for role, value in by_role.items())
