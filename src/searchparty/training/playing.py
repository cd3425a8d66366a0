"""Setting the stage for a policy in training: its team, its cast, its retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from searchparty.config.recipe import EvalRecipe, ModelSpec, RoleSpec, TeamRecipe, TeamSpec
from searchparty.evaluation.protocols.following import follow_protocol
from searchparty.evaluation.run import load_asked_questions, load_scorable
from searchparty.evaluation.staging import Models
from searchparty.models.loading import Model
from searchparty.questions.types import Question
from searchparty.teams.registry import find_team
from searchparty.training.recipe import EvalStage, PlayedStage


class WithPolicy(Models):
    """The policy plays every role that names no model of its own; it stays open when the others are closed.

    A role that names a model has that model as it is, also where the policy began as the same one.
    """

    def __init__(self, policy: Model) -> None:
        super().__init__()
        self._policy = policy

    def playing(self, own: ModelSpec | None, usual: ModelSpec) -> Model:
        """See `Models.playing`."""
        return self._policy if own is None else self.get(own)


def team_recipe(stage: PlayedStage, team: TeamSpec, seed: int, candidates: int | None = None) -> TeamRecipe:
    """What `set_stage` needs of a stage.

    Args:
        candidates: completions of an answer call, for a team with that option; None leaves the team's own.
    """
    options = dict(team.options)
    if candidates is not None and "candidates" in team_options(team):
        options["candidates"] = candidates
    return TeamRecipe(
        team=TeamSpec(name=team.name, **options),
        model=stage.policy,
        index=stage.index,
        prompts=stage.prompts,
        seed=seed,
        sampling=stage.sampling,
        roles=stage.roles,
        retriever=stage.retriever,
    )


def eval_recipe(stage: EvalStage, seed: int) -> EvalRecipe:
    """The evaluation that a stage stands for. Raises UserError if it contradicts its protocol."""
    team = team_recipe(stage, stage.team, seed)
    own = ("protocol", "questions", "format", "samples", "limit", "concurrency", "scorer")
    values = {key: getattr(team, key) for key in TeamRecipe.model_fields} | {key: getattr(stage, key) for key in own}
    return follow_protocol(EvalRecipe(**values))


def team_options(team: TeamSpec) -> set[str]:
    """The names of the options of a team. Raises UserError if there is no such team."""
    return {option.name for option in fields(find_team(team.name))}


def temperatures(stage: PlayedStage, roles: Mapping[str, Any]) -> dict[str, float]:
    """Role to the temperature at which its tokens are drawn."""
    return {
        role: own if (own := stage.roles.get(role, RoleSpec()).sampling.temperature) is not None else stage.sampling.temperature
        for role in roles
    }


def load_stage_questions(stage: Any) -> list[Question]:
    """The questions that a stage, or its development part, names: each once, with golden answers. Raises UserError."""
    return StageQuestions().of(stage)


class StageQuestions:
    """The questions of stages, of which several often name the same: each file is read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[object, ...], list[Question]] = {}

    def of(self, stage: Any) -> list[Question]:
        """As `load_stage_questions`; the list is shared and must stay as it is."""
        played = eval_recipe(stage, 0) if isinstance(stage, EvalStage) else None
        source = self.source(stage)
        if source not in self._read:
            if played is not None:
                self._read[source] = load_asked_questions(played)[0]
            else:
                self._read[source] = load_scorable(stage.questions, stage.format, stage.limit)[0]
        return self._read[source]

    @staticmethod
    def source(stage: Any) -> tuple[object, ...]:
        """Equal for stages that name the same questions."""
        return stage.questions, stage.format, stage.limit, getattr(stage, "protocol", None)
