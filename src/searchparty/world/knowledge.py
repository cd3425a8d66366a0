"""Looking things up in a set of facts: a world's fact table, or what an expert has read so far. Knows no text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from searchparty.world.relations import REAL_NAME
from searchparty.world.types import Chain, Fact, Form, Inquiry, Reference


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a chain can be followed."""

    at: Reference
    """Where it stands; the real name, if a stage name is known to need it."""
    remaining: tuple[str, ...]
    """Relations that are left; empty at the end."""
    used: tuple[Fact, ...]
    """The facts it went along, those that told a real name among them."""


class Knowledge:
    """Facts by subject and relation."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._found: dict[tuple[Reference, str], list[Fact]] = defaultdict(list)
        for fact in facts:
            self._found[fact.subject, fact.relation].append(fact)

    def about(self, thing: Reference, relation: str) -> list[Fact]:
        """Facts that say this of the thing, in the order in which they became known."""
        return self._found.get((thing, relation), [])

    def walk(self, chain: Chain) -> Walk:
        """Follow a chain as far as the facts reach. Of two facts that contradict each other the first counts."""
        at, used = chain.start, list[Fact]()
        for number, relation in enumerate(chain.relations):
            step = self.about(at, relation)
            if not step and (real := self.about(at, REAL_NAME)):
                used.append(real[0])
                at = real[0].object
                step = self.about(at, relation)
            if not step:
                return Walk(at, chain.relations[number:], tuple(used))
            used.append(step[0])
            at = step[0].object
        return Walk(at, (), tuple(used))

    def ends(self, chain: Chain) -> set[Reference]:
        """Everything that can stand at the end of a chain, along all facts that fit: more than one if it is ambiguous."""
        places = {chain.start}
        for relation in chain.relations:
            owners = places | {fact.object for place in places for fact in self.about(place, REAL_NAME)}
            places = {fact.object for owner in owners for fact in self.about(owner, relation)}
        return places

    def answers(self, inquiry: Inquiry) -> set[str]:
        """Every answer that the facts allow, by the name in the facts: exactly one for a fair question."""
        ends = [self.ends(chain) for chain in inquiry.chains]
        if inquiry.form is Form.END:
            return {end.name for end in ends[0]}
        pairs = [(first, second) for first in ends[0] for second in ends[1]]
        return {compare(inquiry, first, second) for first, second in pairs}


def compare(inquiry: Inquiry, first: Reference, second: Reference) -> str:
    """The answer to a comparison whose chains end in these two things. Equal years name the second start."""
    if inquiry.form is Form.SAME:
        return "yes" if first == second else "no"
    return inquiry.chains[0 if int(first.name) < int(second.name) else 1].start.name
