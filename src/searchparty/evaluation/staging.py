"""Setting the stage for a recipe: its team, models, prompts and retriever, ready to play, and closed together."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from searchparty.config.recipe import ModelSpec, RoleSpec, TeamRecipe
from searchparty.costs.prices import check_prices, load_prices
from searchparty.errors import UserError
from searchparty.evaluation.retrievers import open_choice
from searchparty.models.chat import ChatFormat
from searchparty.models.loading import Model, load_model
from searchparty.models.types import Message, Sampling
from searchparty.retrieval.batching import AsyncRetriever
from searchparty.retrieval.cache import CacheMode, open_through_cache
from searchparty.retrieval.retrying import Patience
from searchparty.retrieval.types import Retriever
from searchparty.teams.cast import Cast, Part
from searchparty.teams.prompts import Prompt, built_in_prompt, load_prompt
from searchparty.teams.registry import find_team, make_team
from searchparty.teams.team import Team


class Models:
    """Models by what a recipe says of them, each loaded once: for the roles of a team, or for several runs in one process."""

    def __init__(self) -> None:
        self._loaded: dict[ModelSpec, Model] = {}

    def get(self, spec: ModelSpec) -> Model:
        """The model, loaded now if it was not before. Raises UserError, see `load_model`."""
        if spec not in self._loaded:
            self._loaded[spec] = load_model(**spec.model_dump())
        return self._loaded[spec]

    def playing(self, own: ModelSpec | None, usual: ModelSpec) -> Model:
        """The model of a role: its own if it names one, else the one that plays the team."""
        return self.get(own or usual)

    async def close(self) -> None:
        """Close all engines."""
        while self._loaded:
            await self._loaded.popitem()[1].engine.close()


@dataclass(frozen=True)
class Stage:
    """Everything that an episode needs besides its question. One stage serves all episodes of a run."""

    team: Team
    cast: Cast
    retriever: AsyncRetriever | None
    models: Models
    owns_models: bool

    def describe(self) -> dict[str, Any]:
        """What the episodes depend on besides the recipe, by content: None for what a server has not told yet."""
        parts, retriever = self.cast.items(), self.retriever
        known = {role: part.model.identity_known for role, part in parts}
        return {
            "models": {role: part.model.identity if known[role] else None for role, part in parts},
            "chat": {role: _fingerprint(part.model.chat) if part.model.chat else None for role, part in parts},
            "prompts": {role: _digest(repr(part.prompt.contents)) for role, part in parts},
            "team": _digest(inspect.getsource(type(self.team))),
            "retriever": retriever.identity if retriever is not None and retriever.identity_known else None,
        }

    async def close(self) -> None:
        """Close the retriever, and the models unless they came from outside."""
        if self.owns_models:
            await self.models.close()
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


def set_stage(recipe: TeamRecipe, models: Models | None = None) -> Stage:
    """Load whatever the recipe names. The cheap checks come first, the models last.

    Args:
        models: models to share with other stages; they stay open when this stage is closed.

    Raises:
        UserError: for anything that is missing or does not fit.

    """
    team_class = find_team(recipe.team.name)
    faults: list[str] = []
    for check in (lambda: make_team(team_class, recipe.team.options), lambda: check_roles(recipe.roles, team_class)):
        try:
            check()
        except UserError as error:
            faults += error.lines
    if faults:
        raise UserError(*faults)
    team = make_team(team_class, recipe.team.options)
    prompts = {role: _prompt(role, recipe, team_class) for role in team.tags}
    faults = [fault for role, prompt in prompts.items() for fault in prompt.faults(team.turns.get(role, {}))]
    if faults:
        raise UserError(*faults)
    retriever = _open_retriever(recipe, team)
    shelf = models if models is not None else Models()
    cast = {}
    for role, prompt in prompts.items():
        own = recipe.roles.get(role, RoleSpec())
        model = shelf.playing(own.model, recipe.model)
        changes = own.sampling.model_dump(exclude_none=True)
        cast[role] = Part(model, prompt, Sampling(**{**recipe.sampling.model_dump(), **changes}))
    if recipe.prices is not None:
        check_prices(load_prices(recipe.prices), [part.model.identity for part in cast.values()], recipe.prices)
    return Stage(team, cast, retriever, shelf, owns_models=models is None)


def _open_retriever(recipe: TeamRecipe, team: Team) -> AsyncRetriever | None:
    if not team.needs_retriever:
        return None
    asked, index = recipe.retriever, recipe.index
    patience = Patience(asked.timeout, asked.attempts, break_after=asked.break_after, break_seconds=asked.break_seconds)

    def open_index_or_server() -> Retriever:
        if index is None:
            raise UserError(
                f"index: the team {team.name} searches; give --index DIR, or build one with: searchparty index build"
            )
        return open_choice(index, dialect=asked.dialect, patience=patience)

    if asked.cache is None:
        return AsyncRetriever(open_index_or_server())
    mode = CacheMode(asked.cache.mode)
    return AsyncRetriever(open_through_cache(open_index_or_server, asked.cache.path, mode, asked.cache.identity))


def _prompt(role: str, recipe: TeamRecipe, team: type[Team]) -> Prompt:
    own = recipe.roles.get(role, RoleSpec())
    if own.prompt is not None:
        return load_prompt(own.prompt)
    name = team.prompts[role]
    if recipe.prompts == "world":
        from searchparty.world.prompting import world_prompt

        return world_prompt(name)
    if recipe.prompts is not None:
        return load_prompt(Path(recipe.prompts) / f"{name.removesuffix('.yaml')}.yaml")
    if name.endswith((".yaml", ".yml")):
        return load_prompt(Path(inspect.getfile(team)).parent / name)
    return built_in_prompt(name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _fingerprint(chat: ChatFormat) -> str:
    """Name and digest of how a conversation is rendered: a probe of every piece."""
    probe = [Message("user", "a"), Message("assistant", "b")]
    pieces = (
        chat.open("s", probe),
        chat.open(""),
        chat.user("u"),
        chat.begin_action(),
        chat.end_action(False),
        list(chat.end_ids),
    )
    return f"{chat.name} {_digest(repr(pieces))}"
