"""Mistakes that an imperfect expert makes, by name and rate, and the dice that decide when.

Each mistake has dice of its own, thrown from the request's seed: changing one rate leaves all other mistakes where they were.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields

from searchparty.errors import UserError


@dataclass(frozen=True, slots=True)
class Faults:
    """Probability of each mistake at each turn in which it can be made; all 0 is the perfect expert.

    Raises UserError for rates outside 0 to 1.
    """

    naive_query: float = 0.0
    """The Searcher's query is the whole task."""
    skip_search: float = 0.0
    """The Searcher reports after a search although a further one is needed."""
    wrong_name: float = 0.0
    """A report's last fact, or an answer, names something else of the same kind."""
    malformed: float = 0.0
    """The turn, of any role, holds no well-formed action."""
    skip_task: float = 0.0
    """The Leader selects although a further task is needed."""
    whole_task: float = 0.0
    """The Leader gives the whole question as its only task."""
    drop_report: float = 0.0
    """The Leader leaves out a needed report."""
    wrong_report: float = 0.0
    """The Leader selects another report in place of a needed one, or none if there is no other."""

    def __post_init__(self) -> None:
        """Check all rates."""
        rates = {field.name: getattr(self, field.name) for field in fields(self)}
        wrong = [f"{name}: {rate} is no rate; give a number from 0 to 1" for name, rate in rates.items() if not 0 <= rate <= 1]
        if wrong:
            raise UserError(*wrong)


TYPICAL = Faults(
    naive_query=0.25,
    skip_search=0.3,
    wrong_name=0.1,
    malformed=0.03,
    skip_task=0.15,
    whole_task=0.2,
    drop_report=0.15,
    wrong_report=0.1,
)
"""Makes teams that work, but far from perfectly: a start for training that leaves much to learn."""


class Dice:
    """All chance of one turn. Equal seed and candidate give equal throws."""

    def __init__(self, faults: Faults, seed: int, candidate: int) -> None:
        self._faults, self._name = faults, f"{seed} {candidate}"

    def makes(self, fault: str) -> bool:
        """Whether the mistake of this name is made in this turn."""
        rate = float(getattr(self._faults, fault))
        return rate > 0 and random.Random(f"{self._name} {fault}").random() < rate

    def stream(self, purpose: str) -> random.Random:
        """Random numbers for how a mistake is made, or for a guess."""
        return random.Random(f"{self._name} {purpose} how")


def malformed(tag: str, content: str, rng: random.Random) -> str:
    """A turn that means this action and is none: without tags, never closed, or misspelt."""
    return rng.choice((content, f"<{tag}>{content}", f"<{tag[:-1]}>{content}</{tag[:-1]}>"))
