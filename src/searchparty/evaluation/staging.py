"""Setting the stage for a recipe: its team, models, prompts and retriever, ready to play, and closed together."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from searchparty.config.recipe import ModelSpec, SamplingSpec, TeamRecipe
from searchparty.errors import UserError
from searchparty.models.loading import Model, load_model
from searchparty.models.types import Sampling
from searchparty.retrieval.batching import AsyncRetriever
from searchparty.retrieval.opening import open_retriever
from searchparty.teams.cast import Cast, Part
from searchparty.teams.prompts import Prompt, built_in_prompt, load_prompt
from searchparty.teams.registry import find_team, make_team
from searchparty.teams.team import Team


@dataclass(frozen=True)
class Stage:
    """Everything that an episode needs besides its question. One stage serves all episodes of a run."""

    team: Team
    cast: Cast
    retriever: AsyncRetriever | None

    def models(self) -> list[Model]:
        """Each model once."""
        return list({id(part.model): part.model for part in self.cast.values()}.values())

    async def close(self) -> None:
        """Close engines and retriever."""
        for model in self.models():
            await model.engine.close()
        if self.retriever is not None:
            await self.retriever.close()


def check_roles(roles: Iterable[str], team: type[Team]) -> None:
    """Raises UserError, one line each, for roles in a recipe that the team does not have."""
    faults = []
    for role in roles:
        if role not in team.tags:
            near = get_close_matches(role, team.tags, n=1)
            hint = f"did you mean {near[0]}?" if near else f"its roles are {', '.join(team.tags)}"
            faults.append(f"roles.{role}: the team {team.name} has no such role; {hint}")
    if faults:
        raise UserError(*faults)


async def set_stage(recipe: TeamRecipe) -> Stage:
    """Load whatever the recipe names. The cheap checks come first, the models last.

    Raises:
        UserError: for anything that is missing or does not fit.
        ServiceFailure: if an endpoint has to be asked what it offers and does not reply.
    """
    team_class = find_team(recipe.team.name)
    team = make_team(team_class, recipe.team.options)
    check_roles(recipe.roles, team_class)
    prompts = {role: _prompt(role, recipe, team_class) for role in team.tags}
    if recipe.index is None and team.needs_retriever:
        raise UserError(f"index: the team {team.name} searches; give --index DIR, or build one with: searchparty index build")
    retriever = None
    if recipe.index is not None and team.needs_retriever:
        opened = open_retriever(recipe.index, timeout=recipe.retriever.timeout, attempts=recipe.retriever.attempts)
        retriever = AsyncRetriever(opened)
    models: dict[ModelSpec, Model] = {}
    cast = {}
    for role, prompt in prompts.items():
        own = recipe.roles.get(role)
        spec = (own and own.model) or recipe.model
        if spec not in models:
            models[spec] = await _load(spec)
        cast[role] = Part(models[spec], prompt, _sampling((own and own.sampling) or recipe.sampling))
    return Stage(team, cast, retriever)


async def _load(spec: ModelSpec) -> Model:
    return await load_model(
        spec.spec,
        tokenizer=spec.tokenizer,
        route=spec.route,
        timeout=spec.timeout,
        device=spec.device,
        dtype=spec.dtype,
    )


def _prompt(role: str, recipe: TeamRecipe, team: type[Team]) -> Prompt:
    own = recipe.roles.get(role)
    if own and own.prompt:
        return load_prompt(own.prompt)
    name = team.prompts[role]
    if name.endswith((".yaml", ".yml")):
        return load_prompt(Path(inspect.getfile(team)).parent / name)
    return built_in_prompt(name)


def _sampling(spec: SamplingSpec) -> Sampling:
    return replace(Sampling(), **spec.model_dump())
