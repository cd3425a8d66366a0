"""Model cards: which checkpoint plays which role, what it was trained on and from, and with which numbers.

Says what the run directory says and nothing else: intended use and licence of weights and data are for people to add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from searchparty.credit.plan import RoleCredit
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.files import read_json
from searchparty.reporting.document import Cell, Document, Number, Section, Table
from searchparty.reporting.result_tables import Results
from searchparty.reporting.systems import System, Training
from searchparty.training.recipe import EvalStage, RLStage, SFTStage
from searchparty.training.references import STAGE, role_models
from searchparty.training.run_directory import TrainDirectory


def make_model_card(training: Training, systems: Sequence[System], results: Results) -> Document:
    """The card of one training run.

    Args:
        systems: those of the report; the run's own are chosen.
        results: those of the report, so that what the card shares with it is not computed again.
    """
    own = [system for system in systems if training.path in system.path.parents]
    made = _made(training)
    environment = read_json(TrainDirectory(training.path).environment_file, _environment)
    card = Document(f"Model card: {training.recipe.name}, seed {training.recipe.seed}")
    versions = ", ".join(f"{name} {version}" for name, version in environment["packages"].items())
    about = [
        f"Run {training.path}, made with searchparty {environment.get('searchparty')}; {versions}.",
        "One training seed: intervals say how sure the numbers are for these weights, not what training again would give.",
    ]
    card.sections.append(Section("What this is", about))
    card.sections.append(Section("Who plays which role", tables=[_roles(training, own, made)]))
    inputs = environment["inputs"]
    learning = _learning(training)
    tables = [_stages(training, made, inputs), *([learning] if learning.rows else [])]
    card.sections.append(
        Section("What was trained on what", ["A teacher, a judge or a critic takes no part in playing."], tables)
    )
    if own:
        card.sections.append(results.of(own))
        card.sections.append(Section("Where it fails", [_worst(system) for system in own]))
    return card


def _environment(value: Any) -> dict[str, Any]:
    return {**value, "packages": dict(value.get("packages") or {}), "inputs": dict(value.get("inputs") or {})}


def _made(training: Training) -> dict[str, tuple[str, int]]:
    """Stage to the folder of its model, relative to the run, and the step of that checkpoint; stages that finished only."""
    found = {}
    for name, spec in training.recipe.stages.items():
        file = TrainDirectory(training.path).stage(name).result
        if not isinstance(spec, EvalStage) and file.is_file():
            found[name] = read_json(file, lambda result: (str(result["model"]), int(result["step"])))
    return found


def _roles(training: Training, systems: Sequence[System], made: Mapping[str, tuple[str, int]]) -> Table:
    titles = {system.path: system.title for system in systems}
    rows: list[list[Cell]] = []
    for name, spec in training.recipe.stages.items():
        place = TrainDirectory(training.path).evaluation(name)
        if not isinstance(spec, EvalStage) or place not in titles:
            continue
        identities = read_json(RunDirectory(place).environment_file, dict).get("models") or {}
        own = {key.split(".")[1]: model.spec for key, model in role_models(spec).items()}
        players: dict[tuple[str, str], list[str]] = {}
        for role, identity in identities.items():
            players.setdefault((own.get(role, spec.policy.spec), str(identity or "unknown")), []).append(role)
        for (origin, identity), roles in players.items():
            stage = origin.removeprefix(STAGE) if origin.startswith(STAGE) else None
            folder, step = made.get(stage, ("–", None)) if stage is not None else ("–", None)
            rows.append([titles[place], ", ".join(roles), stage or "as it came", folder, Number(step, 0), identity])
    return Table("players", "Checkpoints by role", ("system", "roles", "made by stage", "checkpoint", "step", "identity"), rows)


def _stages(training: Training, made: Mapping[str, tuple[str, int]], inputs: Mapping[str, Any]) -> Table:
    columns = ("stage", "kind", "began as", "teacher", "team", "questions", "sha256", "kept step", "learning rate", "per step")
    rows: list[list[Cell]] = []
    for name, spec in training.recipe.stages.items():
        if not isinstance(spec, RLStage | SFTStage):
            continue
        if isinstance(spec, RLStage):
            teams, teacher = spec.team.name, spec.teacher.spec if spec.teacher is not None else "–"
            per_step = f"{spec.questions_per_step} questions × {spec.samples} attempts × {spec.candidates} candidates"
        else:
            teams = ", ".join(team.name for team in spec.teams) or "recorded episodes"
            teacher = spec.expert.spec if spec.expert is not None else str(spec.episodes)
            per_step = f"{spec.sequences_per_step} sequences"
        shown = spec.questions.name if spec.limit is None else f"{spec.questions.name}, the first {spec.limit}"
        digest = str((inputs.get(name) or {}).get("questions", "unknown"))
        step = made[name][1] if name in made else None
        rate = f"{spec.learner.learning_rate:g}"
        rows.append([name, spec.kind, spec.policy.spec, teacher, teams, shown, digest[:16], Number(step, 0), rate, per_step])
    return Table("stages", "Stages", columns, rows, ["For sft, teacher names who was imitated."])


def _learning(training: Training) -> Table:
    rows: list[list[Cell]] = [
        [name, role, _advantage(credit), _rewards(credit)]
        for name, spec in training.recipe.stages.items()
        if isinstance(spec, RLStage)
        for role, credit in spec.credit.roles.items()
    ]
    return Table("learning", "What each role learns from", ("stage", "role", "advantage", "rewards"), rows)


def _advantage(credit: RoleCredit) -> str:
    if not credit.learns:
        return "does not learn"
    coefficient = getattr(credit.estimator, "coefficient", 1.0)
    return credit.estimator.name if coefficient == 1 else f"{credit.estimator.name}, coefficient {coefficient:g}"


def _rewards(credit: RoleCredit) -> str:
    """The weights of the parts; a dash where nothing is earned, so that an invalid format costs nothing either."""
    parts = credit.rewards.model_dump()
    weights = {**parts.pop("given"), **{name: weight for name, weight in parts.items() if name != "invalid_format"}}
    shown = [f"{name} {weight:g}" for name, weight in weights.items() if weight]
    if not credit.learns or not shown:
        return "–"
    invalid = parts["invalid_format"]
    return ", ".join(shown if invalid is None else [*shown, f"invalid_format {invalid:g}"])


def _worst(system: System) -> str:
    losses = system.diagnosis.whole.losses
    if not losses:
        return f"{system.title}: every episode is right."
    worst = losses[0]
    return (
        f"{system.title}: most at {worst.interface.value}, {100 * worst.share:.1f} % of episodes, such as {worst.examples[0]}."
    )
