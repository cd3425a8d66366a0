"""The words of the world: references, facts, chains, inquiries, and the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from searchparty.questions.types import Question
from searchparty.retrieval.types import Passage
from searchparty.world.parameters import WorldParameters
from searchparty.world.relations import Kind


@dataclass(frozen=True, slots=True)
class Reference:
    """How a text points at a thing: kind and name together are unique. A stage name is a reference of its own."""

    kind: Kind
    name: str

    @property
    def mention(self) -> str:
        """The words in a sentence: kind and name, or the bare name of a person or year."""
        return self.name if self.kind in (Kind.PERSON, Kind.YEAR) else f"the {self.kind} {self.name}"

    @property
    def is_stage_name(self) -> bool:
        """Whether this is a person's stage name: it has one word, a person's own name has two."""
        return self.kind is Kind.PERSON and " " not in self.name


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing that questions may be about."""

    kind: Kind
    name: str
    """The name on its own page."""
    alias: str | None = None
    """A person's stage name; other pages and questions use it in place of the name."""

    @property
    def own(self) -> Reference:
        """As its own page calls it."""
        return Reference(self.kind, self.name)

    @property
    def known_as(self) -> Reference:
        """As all other texts call it."""
        return Reference(self.kind, self.alias or self.name)


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is true, or that a text claims."""

    subject: Reference
    relation: str
    """The relation's noun."""
    object: Reference


@dataclass(frozen=True, slots=True)
class Chain:
    """A thing found by following relations from a start: director, then birthplace, of a film. At least one relation."""

    start: Reference
    relations: tuple[str, ...]
    """Nouns, in the order in which they are followed."""


class Form(StrEnum):
    """What is asked about the ends of the chains."""

    END = "end"
    """One chain: what stands at its end?"""
    SAME = "same"
    """Two chains with equal relations: is the end the same? Yes or no."""
    FIRST = "first"
    """Two chains of one relation that ends in a year: which start has the smaller year?"""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a question means."""

    form: Form
    chains: tuple[Chain, ...]

    @property
    def hops(self) -> int:
        """Facts that the answer rests on, those that tell a stage name's real name left out."""
        return sum(len(chain.relations) for chain in self.chains)


@dataclass(frozen=True)
class World:
    """Everything that was made. Equal parameters make equal worlds."""

    parameters: WorldParameters
    entities: tuple[Entity, ...]
    """Things that questions are about; strangers that exist only to be mistaken for them are left out."""
    facts: tuple[Fact, ...]
    """All that is true, strangers included; each stands in exactly one passage."""
    passages: tuple[Passage, ...]
    fact_passages: Mapping[Fact, str]
    """Fact to the id of the passage that states it."""
    questions: Mapping[str, tuple[Question, ...]]
    """By split: train, dev, test."""

    def names(self, kind: Kind) -> list[str]:
        """Names under which things of this kind are known, in order; years for the kind year."""
        if kind is Kind.YEAR:
            return sorted({fact.object.name for fact in self.facts if fact.object.kind is Kind.YEAR})
        return [entity.known_as.name for entity in self.entities if entity.kind is kind]
