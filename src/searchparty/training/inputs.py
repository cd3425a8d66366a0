"""What a run depends on besides its recipe, by content: a path in a recipe says where a file is, not what is in it.

Reads files; loads no weights and asks no server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from searchparty.config.recipe import ModelSpec
from searchparty.config.retrieval import RetrieverPlan
from searchparty.errors import UserError
from searchparty.evaluation.retrievers import plan_of
from searchparty.models.loading import load_model, model_folder
from searchparty.models.model_folders import model_identity
from searchparty.retrieval.manifest import load_manifest
from searchparty.retrieval.stores.address import STORE_PREFIXES
from searchparty.training.recipe import PlayedStage, TrainRecipe
from searchparty.training.recorded_episodes import episode_files
from searchparty.training.references import model_references, role_models

SERVED = ("http://", "https://")


def describe_inputs(recipe: TrainRecipe) -> dict[str, dict[str, str]]:
    """Per stage the key of everything that it reads, and a digest of the contents.

    Not in it: what another stage makes, what a server holds, what comes with the package, and what cannot be read.
    """
    read: dict[tuple[str, str], str | None] = {}  # each place once, however many stages name it
    described: dict[str, dict[str, str]] = {}
    for name, spec in recipe.stages.items():
        described[name] = {}
        for key, kind, place in _named(spec):
            if (kind, place) not in read:
                read[kind, place] = _digest(kind, place)
            digest = read[kind, place]
            if digest is not None:
                described[name][key] = digest
    return described


def _named(spec: PlayedStage) -> Iterator[tuple[str, str, str]]:
    """Key, kind and place of whatever a stage names."""
    yield "questions", "file", str(spec.questions)
    development, judge = getattr(spec, "development", None), getattr(spec, "judge", None)
    if development is not None:
        yield "development", "file", str(development.questions)
    recorded = getattr(spec, "episodes", None)
    if recorded is not None:
        yield "episodes", "episodes", str(recorded)
    if spec.index is not None:
        yield from _retrieval(spec.index)
    if spec.prompts not in (None, "world"):
        yield "prompts", "prompts", str(spec.prompts)
    if judge is not None and judge.prompt is not None:
        yield "judge.prompt", "file", str(judge.prompt)
    for role, own in spec.roles.items():
        if own.prompt is not None:
            yield f"roles.{role}.prompt", "file", str(own.prompt)
    for team in getattr(spec, "teams", None) or (getattr(spec, "team", None),):
        if team is not None and ".py:" in team.name:
            yield f"team {team.name}", "file", team.name.rpartition(":")[0]
    models: dict[str, ModelSpec | None] = {**model_references(spec)}
    models["judge.model"] = None if judge is None else judge.model
    models |= role_models(spec)
    for key, model in models.items():
        if model is not None and not model.spec.startswith(("stage:", *SERVED)):
            yield key, "model", model.spec


def _retrieval(choice: str | RetrieverPlan) -> Iterator[tuple[str, str, str]]:
    """The indexes and the models that a retriever is put together from."""
    try:
        plan = plan_of(choice)
    except UserError:
        return
    for number, source in enumerate(plan.sources):
        if not source.index.startswith((*SERVED, *STORE_PREFIXES)):
            yield "index" if choice == source.index else f"index.sources.{number}", "index", source.index
        if source.model is not None:
            yield f"index.sources.{number}.model", "model", source.model
    if plan.rerank is not None:
        yield "index.rerank.model", "model", plan.rerank.model


def _digest(kind: str, place: str) -> str | None:
    try:
        return _DIGESTS[kind](place)
    except (UserError, OSError, ValueError):
        return None


def _file(place: str) -> str:
    with Path(place).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _episodes(place: str) -> str:
    return hashlib.sha256("".join(_file(str(file)) for file in episode_files(Path(place))).encode()).hexdigest()


def _prompts(place: str) -> str:
    lines = [f"{file.name} {_file(str(file))}\n" for file in sorted(Path(place).glob("*.yaml"))]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _index(place: str) -> str:
    return load_manifest(Path(place)).identity


def _model(place: str) -> str:
    return load_model(place).identity if place.startswith("scripted:") else model_identity(model_folder(place))


_DIGESTS: Mapping[str, Callable[[str], str]] = {
    "file": _file,
    "episodes": _episodes,
    "prompts": _prompts,
    "index": _index,
    "model": _model,
}
