"""A dry run of a recipe: everything that can be known to be wrong before any model is loaded, all at once.

Reads files and tokenizers, loads no weights, writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from searchparty.config.recipe import ModelSpec, TeamSpec
from searchparty.credit.estimators.group_relative import GroupRelative
from searchparty.errors import UserError
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.staging import Models, set_stage
from searchparty.models.loading import Model, load_model, load_tokenizer, model_folder
from searchparty.models.model_folders import check_model_folder
from searchparty.models.scripted import ScriptedEngine
from searchparty.models.types import GenerateRequest
from searchparty.teams.registry import find_team
from searchparty.training.judge import judge_prompt
from searchparty.training.overlap import refuse_tested_questions
from searchparty.training.planner_prices import check_named_prices
from searchparty.training.playing import StageQuestions, team_options, team_recipe
from searchparty.training.recipe import EvalStage, RLStage, SFTStage, StageSpec, TrainRecipe
from searchparty.training.recorded_episodes import episode_files
from searchparty.training.references import CRITIC, model_references, role_models
from searchparty.training.sweep_report import costs_of
from searchparty.training.teacher import check_same_tokenizer
from searchparty.training.trackers import check_trackers


def check_recipe(recipe: TrainRecipe) -> None:
    """Raises UserError with one line for every fault of every stage, each naming its place in the recipe."""
    faults: list[str] = []
    try:
        check_trackers(recipe.trackers)
    except UserError as error:
        faults += [f"trackers: {line}" for line in error.lines]
    origins: dict[str, ModelSpec] = {}
    there: set[str] = set()
    questions = StageQuestions()
    for name, spec in recipe.stages.items():
        for place, check in _checks(spec, recipe, origins, there, questions):
            try:
                check()
            except UserError as error:
                faults += [f"stages.{name}: {place}{line}" for line in error.lines]
        if not isinstance(spec, EvalStage):
            origins[name] = _origin(spec.policy, origins)
    if faults:
        raise UserError(*dict.fromkeys(faults))


def _checks(
    spec: StageSpec, recipe: TrainRecipe, origins: Mapping[str, ModelSpec], there: set[str], questions: StageQuestions
) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "", lambda: _references(spec, origins)
    yield "", lambda: _questions(spec, questions)
    yield "scorer: ", lambda: scorer_named(spec.scorer)
    for team in spec.teams if isinstance(spec, SFTStage) else (spec.team,):
        yield "", lambda team=team: _team(spec, team)  # type: ignore[misc]
    yield "", lambda: _models(spec, origins, there)
    if isinstance(spec, EvalStage):
        yield "", lambda: check_named_prices(spec, costs_of(recipe))
    if isinstance(spec, RLStage):
        yield "", lambda: check_named_prices(spec, spec.credit.planner_costs)
        yield "", lambda: _credit(spec)
        yield "", lambda: _budget(spec)
        if spec.judge is not None:
            judge = spec.judge
            yield "judge: ", lambda: judge_prompt(judge.prompt)
    if not isinstance(spec, EvalStage):
        yield "", lambda: refuse_tested_questions(spec, recipe, questions)
    if isinstance(spec, EvalStage) and spec.baseline is not None:
        yield "", lambda: _baseline(spec, recipe)


def _references(spec: StageSpec, origins: Mapping[str, ModelSpec]) -> None:
    faults = []
    for key, model in (model_references(spec) | role_models(spec)).items():
        if model.spec.startswith("stage:"):
            stage = model.spec.removeprefix("stage:")
            if stage not in origins:
                there = ", ".join(origins) or "none"
                faults.append(f"{key}: no earlier stage named {stage} makes a model; earlier ones that do: {there}")
    if faults:
        raise UserError(*faults)


def _questions(spec: StageSpec, questions: StageQuestions) -> None:
    count = len(questions.of(spec))
    if isinstance(spec, SFTStage) and spec.episodes is not None:
        episode_files(spec.episodes)
    if isinstance(spec, RLStage):
        if count < spec.questions_per_step:
            raise UserError(
                f"questions_per_step is {spec.questions_per_step}, but {spec.questions} gives {count} questions; lower it"
            )
        if spec.development is not None:
            try:
                questions.of(spec.development)
            except UserError as error:
                raise UserError(*(f"development: {line}" for line in error.lines)) from None


class _NoModels(Models):
    """A stand-in for every model, so that a stage can be set without loading one."""

    def get(self, spec: ModelSpec) -> Model:
        return Model(spec.spec, spec.spec, ScriptedEngine(_silent), None, None)


def _silent(request: GenerateRequest) -> str:
    return ""


def _team(spec: StageSpec, team: TeamSpec) -> None:
    """Team, options, roles, prompts and retriever."""
    if isinstance(spec, RLStage) and "candidates" in team.options:
        raise UserError("team.candidates: give it as candidates of the stage; evaluations always sample one")
    roles = find_team(team.name).tags
    if isinstance(spec, SFTStage) and (unknown := [role for role in spec.imitate_roles or () if role not in roles]):
        raise UserError(f"imitate_roles: the team {team.name} has no role {unknown[0]}; its roles are {', '.join(roles)}")
    stage = set_stage(team_recipe(spec, team, 0), _NoModels())
    asyncio.run(stage.close())


def _models(spec: StageSpec, origins: Mapping[str, ModelSpec], there: set[str]) -> None:
    """The files of every model, and whether the tokenizers that must agree do.

    Args:
        there: models that were found to be there already; a script reads its whole world, and many roles may name the same.
    """
    policy = _origin(spec.policy, origins)
    trained = not isinstance(spec, EvalStage)
    faults = []
    for key, model in _other_models(spec):
        try:
            _check_there(model, there)
        except UserError as error:
            faults += [f"{key}: {line}" for line in error.lines]
    critic = model_references(spec).get(CRITIC)
    if critic is not None and _elsewhere(critic):
        faults.append(f"{CRITIC}: {critic.spec} cannot be trained, only a model that runs in this process; give a model folder")
    if trained and _elsewhere(policy):
        faults.append(f"policy: {policy.spec} cannot be trained, only a model that runs in this process; give a model folder")
    elif not policy.spec.startswith("stage:"):  # such a reference was named as a fault already
        try:
            _check_there(policy, there)
            if trained:
                _check_tokenizers(spec, policy, origins)
        except UserError as error:
            faults += error.lines
    if faults:
        raise UserError(*faults)


def _elsewhere(model: ModelSpec) -> bool:
    """Whether a model has no files here: a script or an endpoint."""
    return model.spec.startswith(("scripted:", "http://", "https://"))


def _check_there(model: ModelSpec, there: set[str]) -> None:
    if model.spec in there:
        return
    if model.spec.startswith("scripted:"):
        load_model(model.spec)
    elif not _elsewhere(model):
        check_model_folder(model_folder(model.spec))
    there.add(model.spec)


def _other_models(spec: StageSpec) -> Iterator[tuple[str, ModelSpec]]:
    """The models that a stage names besides its policy, with their keys; none that another stage makes."""
    for key, model in (model_references(spec) | role_models(spec)).items():
        if key != "policy" and not model.spec.startswith("stage:"):
            yield key, model
    if isinstance(spec, RLStage) and spec.judge is not None:
        yield "judge.model", spec.judge.model


def _check_tokenizers(spec: StageSpec, policy: ModelSpec, origins: Mapping[str, ModelSpec]) -> None:
    """Whether who teaches by tokens has the policy's."""
    for part, named in model_references(spec).items():
        model = _origin(named, origins)
        scripted = part == "expert" and model.spec.startswith("scripted:")
        if part == "policy" or scripted or model.spec.startswith("stage:"):
            continue
        student = load_tokenizer(policy.spec)
        assert student is not None
        check_same_tokenizer(student, load_tokenizer(model.spec, model.tokenizer), model.spec, part)


def _credit(spec: RLStage) -> None:
    """Whether every role is spoken of, and whether every comparison has somebody to compare with."""
    roles, plan = find_team(spec.team.name).tags, spec.credit.roles
    faults = [
        f"credit.roles.{role}: the team {spec.team.name} has no such role; its roles are {', '.join(roles)}"
        for role in plan
        if role not in roles
    ]
    faults += [
        f"credit.roles: no signal reaches the role {role}; name it, with estimator none if it is not to learn"
        for role in roles
        if role not in plan
    ]
    if spec.judge is not None:
        faults += [
            f"judge.roles: the team {spec.team.name} has no role {role}; its roles are {', '.join(roles)}"
            for role in spec.judge.roles
            if role not in roles
        ]
        faults += [
            f"credit.roles.{role}: asks for the judge's score, but judge.roles is {', '.join(spec.judge.roles)}; add {role}"
            for role, credit in plan.items()
            if "judge" in credit.rewards.given and role not in spec.judge.roles
        ]
    for role, credit in plan.items():
        estimator = credit.estimator
        if credit.learns and role in spec.roles and spec.roles[role].model is not None:
            faults.append(f"roles.{role}.model: another model plays this role, so it cannot learn; give it estimator none")
        if not credit.learns or not isinstance(estimator, GroupRelative):
            continue
        if estimator.compare == "episodes" and spec.samples < 2:
            faults.append(
                f"credit.roles.{role}: compares the episodes of a question, but samples is {spec.samples}: every group would "
                "be a singleton and teach nothing; raise samples"
            )
        if estimator.compare == "candidates" and (spec.candidates < 2 or "candidates" not in team_options(spec.team)):
            faults.append(
                f"credit.roles.{role}: compares the candidates of a call, but candidates is {spec.candidates}: every group "
                "would be a singleton and teach nothing; raise candidates"
            )
    if faults:
        raise UserError(*faults)


def _budget(spec: RLStage) -> None:
    course = spec.learner.schedule
    total = spec.steps * spec.learner.minibatches
    if course.kind != "constant" and course.warmup_steps >= total:
        raise UserError(
            f"learner.schedule.warmup_steps is {course.warmup_steps}, but the stage has {total} optimizer steps (steps × "
            "minibatches); lower it"
        )


def _baseline(spec: EvalStage, recipe: TrainRecipe) -> None:
    other = recipe.stages.get(str(spec.baseline))
    if other is spec:
        raise UserError(f"baseline: {spec.baseline} is this stage itself; name another eval stage")
    if not isinstance(other, EvalStage):
        there = ", ".join(name for name, stage in recipe.stages.items() if isinstance(stage, EvalStage))
        raise UserError(f"baseline: no eval stage named {spec.baseline}; there are: {there}; choose one of them")
    if (other.questions, other.limit, other.format) != (spec.questions, spec.limit, spec.format):
        raise UserError(
            f"baseline: {spec.baseline} asks other questions, so the two cannot be paired; give both the same questions, "
            "format and limit"
        )


def _origin(model: ModelSpec, origins: Mapping[str, ModelSpec]) -> ModelSpec:
    """The model that a reference's training starts from: it has the tokenizer of what will be made."""
    if model.spec.startswith("stage:"):
        return origins.get(model.spec.removeprefix("stage:"), model)
    return model
