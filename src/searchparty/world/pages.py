"""The passages: pages that state facts, and others that are beside the point."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from searchparty.retrieval.types import Passage
from searchparty.world.inhabitants import Inhabitants
from searchparty.world.language import state
from searchparty.world.parameters import WorldParameters
from searchparty.world.relations import PLAIN, Kind
from searchparty.world.types import Entity, Fact, Reference

_MENTIONS = (
    "{a} once had a dream of {b}",
    "a letter about {a} was found in {b}",
    "{a} has a good friend in {b}",
    "many people talk of {a} and {b}",
)
_ANIMALS = ("owl", "fox", "bear", "horse", "frog", "crow", "goat", "snail")
_PLACES = ("hill", "lake", "wood", "cave", "field", "shore", "barn", "garden")
_MEALS = ("grass", "corn", "fish", "nuts", "roots", "leaves", "moss", "bread")


def write_pages(
    inhabitants: Inhabitants, parameters: WorldParameters, rng: random.Random
) -> tuple[tuple[Passage, ...], tuple[Fact, ...], dict[Fact, str]]:
    """All passages in shuffled order, all facts with those of strangers, and the id of the passage that states each fact.

    Each fact stands in exactly one passage, and in one wording.
    """
    pages: list[tuple[str, str, tuple[Fact, ...]]] = [
        (subject.name, " ".join(state(fact, _wording(parameters, rng)) for fact in part), part)
        for subject, facts in _by_subject(inhabitants.facts).items()
        for part in _parts(facts, parameters.facts_per_passage, rng)
    ]
    strangers = []
    for number in range(round(len(inhabitants.facts) * parameters.distractors)):
        near = inhabitants.facts[rng.randrange(len(inhabitants.facts))].subject
        match number % 3:
            case 0:
                title, text = _mention(near, inhabitants, rng)
                pages.append((title, text, ()))
            case 1:
                fact = inhabitants.stranger(inhabitants.some(Kind.PERSON))
                strangers.append(fact)
                pages.append((fact.subject.name, state(fact, _wording(parameters, rng)), (fact,)))
            case _:
                pages.append(_irrelevant(rng))
    rng.shuffle(pages)
    width = len(str(len(pages)))
    passages, where = [], {}
    for number, (title, text, stated) in enumerate(pages, start=1):
        passages.append(Passage(f"w{number:0{width}d}", title, text))
        where.update(dict.fromkeys(stated, passages[-1].id))
    return tuple(passages), (*inhabitants.facts, *strangers), where


def _by_subject(facts: Sequence[Fact]) -> dict[Reference, list[Fact]]:
    found: dict[Reference, list[Fact]] = defaultdict(list)
    for fact in facts:
        found[fact.subject].append(fact)
    return found


def _parts(facts: Sequence[Fact], most: int, rng: random.Random) -> list[tuple[Fact, ...]]:
    """The facts in random order, cut into parts of 1 to `most`."""
    left, parts = rng.sample(facts, len(facts)), []
    while left:
        size = rng.randint(1, most)
        parts.append(tuple(left[:size]))
        left = left[size:]
    return parts


def _wording(parameters: WorldParameters, rng: random.Random) -> int:
    """A wording among those in use; a single one is the plain one."""
    return PLAIN if parameters.paraphrases == 1 else rng.randrange(parameters.paraphrases)


def _mention(near: Reference, inhabitants: Inhabitants, rng: random.Random) -> tuple[str, str]:
    """A page about some city that names the thing without saying anything that a question asks."""
    other: Entity = inhabitants.some(Kind.CITY)
    return other.name, rng.choice(_MENTIONS).format(a=near.mention, b=other.own.mention) + "."


def _irrelevant(rng: random.Random) -> tuple[str, str, tuple[Fact, ...]]:
    animal, place, meal = rng.choice(_ANIMALS), rng.choice(_PLACES), rng.choice(_MEALS)
    return f"the {animal}", f"the {animal} sleeps near the {place} and eats {meal}.", ()
