"""A protocol as a file says it, found by name among those that come with the package or by its path.

Knows what a protocol says; `following` applies it to a run, `choosing` to a file of questions.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from searchparty.config.load import load_recipe
from searchparty.config.recipe import SamplingSpec, Strict
from searchparty.errors import UserError
from searchparty.teams.registry import find_team

SHIPPED = ("multiagent-opd", "mao-arag", "search-r1")
"""Protocols that come with the package."""


class DatasetSpec(Strict):
    """Which questions of one dataset are asked."""

    split: Literal["train", "dev", "test"] | None = None
    """Only questions of this split, or of a source that does not say which they are; None takes all."""
    questions: Annotated[int, Field(ge=1)] | None = None
    """How many; if there are more, which of them depends on their texts alone, see `choosing`."""
    ids: tuple[str, ...] = ()
    """Exactly these: ids, or ids in the dataset's original release."""

    @model_validator(mode="after")
    def _one_way(self) -> DatasetSpec:
        if bool(self.ids) == (self.questions is not None):
            raise ValueError("either questions (how many) or ids is needed")
        return self


class Protocol(Strict):
    """One protocol. Every field but `source` must be kept for a number to be one of this protocol."""

    name: str
    version: Annotated[int, Field(ge=1)]
    source: str
    """Where it comes from, and what of it had to be chosen."""
    datasets: dict[str, DatasetSpec]
    samples: Annotated[int, Field(ge=1)]
    """Attempts per question."""
    candidates: Annotated[int, Field(ge=1)] = 1
    """Completions of an answer call; the first is scored."""
    sampling: SamplingSpec
    scorer: str
    metric: Literal["exact_match", "f1"]
    """The number that is compared first."""
    retriever: str
    """A word that must stand in what the retriever says of itself, such as `e5`."""
    passages: Annotated[int, Field(ge=1)]
    """Passages per query."""
    budgets: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Team to its options that bound an episode."""

    @model_validator(mode="after")
    def _no_idle_budget(self) -> Protocol:
        """Refuse a budget that no team would take notice of."""
        for name, budget in self.budgets.items():
            try:
                known = {field.name for field in fields(find_team(name))}
            except UserError as error:
                raise ValueError(f"budgets: {error}") from None
            if unknown := sorted(budget.keys() - known):
                raise ValueError(f"budgets.{name}: the team has no option {unknown[0]}; it has {', '.join(sorted(known))}")
        return self

    @property
    def document(self) -> dict[str, Any]:
        """Everything that must be kept."""
        return self.model_dump(mode="json", exclude={"source"})

    @property
    def sha256(self) -> str:
        """Of everything that must be kept."""
        return hashlib.sha256(self.model_dump_json(exclude={"source"}).encode()).hexdigest()


def load_protocol(name: str) -> Protocol:
    """The protocol of this name or in this file. Raises UserError if there is none, with one line for each fault in it."""
    if name in SHIPPED:
        with resources.as_file(resources.files(__package__) / f"{name}.yaml") as file:
            return load_recipe(Protocol, file, (), {})
    if not name.endswith((".yaml", ".yml")):
        raise UserError(f"protocol {name}: no such protocol; there are {', '.join(SHIPPED)}, or give the path of a .yaml file")
    return load_recipe(Protocol, Path(name), (), {})
