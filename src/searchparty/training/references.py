"""The models that a stage names, and what stands in their place once an earlier stage has made one.

Knows keys of stages and `stage:NAME`; loads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from searchparty.config.recipe import ModelSpec
from searchparty.errors import UserError
from searchparty.training.recipe import PlayedStage, RLStage, StageSpec

CRITIC = "critic.model"
STAGE = "stage:"
"""How a model begins that an earlier stage of the recipe makes."""


def model_references(spec: PlayedStage) -> dict[str, ModelSpec]:
    """Key to model, for the keys under which a stage may name what another one made; those that are not set are left out."""
    named = {key: getattr(spec, key, None) for key in ("policy", "teacher", "reference", "expert")}
    named[CRITIC] = spec.critic.model if isinstance(spec, RLStage) and spec.critic is not None else None
    return {key: model for key, model in named.items() if isinstance(model, ModelSpec)}


def resolve_references(spec: StageSpec, made: Mapping[str, Path]) -> StageSpec:
    """The stage with `stage:NAME` replaced by the folder of what that stage made."""
    changes: dict[str, object] = {}
    for key, model in model_references(spec).items():
        if not model.spec.startswith(STAGE):
            continue
        name = model.spec.removeprefix(STAGE)
        if name not in made:
            raise UserError(f"stages: {key} {model.spec}: no earlier stage of that name made a model")
        found = model.model_copy(update={"spec": str(made[name])})
        if key == CRITIC:
            assert isinstance(spec, RLStage) and spec.critic is not None
            changes["critic"] = spec.critic.model_copy(update={"model": found})
        else:
            changes[key] = found
    return spec.model_copy(update=changes)
