"""The models that a stage names, and what stands in their place once an earlier stage has made one.

Knows keys of stages and `stage:NAME`; loads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from searchparty.config.recipe import ModelSpec
from searchparty.errors import UserError
from searchparty.training.recipe import PlayedStage, RLStage, StageSpec, TrainRecipe

CRITIC = "critic.model"
STAGE = "stage:"
"""How a model begins that an earlier stage of the recipe makes."""


def model_references(spec: PlayedStage) -> dict[str, ModelSpec]:
    """Key to model, for the keys under which a stage may name what another one made; those that are not set are left out."""
    named = {key: getattr(spec, key, None) for key in ("policy", "teacher", "reference", "expert")}
    named[CRITIC] = spec.critic.model if isinstance(spec, RLStage) and spec.critic is not None else None
    return {key: model for key, model in named.items() if isinstance(model, ModelSpec)}


def role_models(spec: PlayedStage) -> dict[str, ModelSpec]:
    """Key to model, for the roles that name a model of their own."""
    return {f"roles.{role}.model": own.model for role, own in spec.roles.items() if own.model is not None}


def named_stages(spec: PlayedStage) -> set[str]:
    """The stages whose models a stage names. What an evaluation is compared with is not among them."""
    models = [*model_references(spec).values(), *role_models(spec).values()]
    return {model.spec.removeprefix(STAGE) for model in models if model.spec.startswith(STAGE)}


def dependent_stages(recipe: TrainRecipe, name: str) -> set[str]:
    """The stages that name what a stage makes, or what one of these makes, and so on."""
    found: set[str] = set()
    for other, spec in recipe.stages.items():  # a stage names earlier ones only
        if named_stages(spec) & {name, *found}:
            found.add(other)
    return found


def resolve_references(spec: StageSpec, made: Mapping[str, Path]) -> StageSpec:
    """The stage with `stage:NAME` replaced by the folder of what that stage made."""
    changes: dict[str, object] = {}
    for key, model in model_references(spec).items():
        if not model.spec.startswith(STAGE):
            continue
        found = _found(key, model, made)
        if key == CRITIC:
            assert isinstance(spec, RLStage) and spec.critic is not None
            changes["critic"] = spec.critic.model_copy(update={"model": found})
        else:
            changes[key] = found
    changes["roles"] = {
        role: own
        if own.model is None or not own.model.spec.startswith(STAGE)
        else own.model_copy(update={"model": _found(f"roles.{role}.model", own.model, made)})
        for role, own in spec.roles.items()
    }
    return spec.model_copy(update=changes)


def _found(key: str, model: ModelSpec, made: Mapping[str, Path]) -> ModelSpec:
    name = model.spec.removeprefix(STAGE)
    if name not in made:
        raise UserError(f"stages: {key} {model.spec}: no earlier stage of that name made a model")
    return model.model_copy(update={"spec": str(made[name])})
