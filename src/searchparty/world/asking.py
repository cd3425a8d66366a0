"""The questions: drawn from the fact table, each with exactly one answer, no chain of relations shared between splits."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from searchparty.errors import UserError
from searchparty.questions.types import Question
from searchparty.retrieval.types import Passage
from searchparty.world.knowledge import Knowledge, Walk, compare
from searchparty.world.language import write_question
from searchparty.world.parameters import WorldParameters
from searchparty.world.relations import EARLIER, OF_KIND, REAL_NAME, Kind
from searchparty.world.types import Chain, Entity, Fact, Form, Inquiry, Reference

DATASET = "world"
_SPLITS = ("test", "dev", "train")
"""Drawn in this order: a longer training split leaves dev and test as they are."""
_PATIENCE = 400
"""Draws that may fail before a world counts as too small for one question more."""


class Asker:
    """Draws inquiries from a world's entities and facts."""

    def __init__(self, entities: Sequence[Entity], facts: Sequence[Fact], parameters: WorldParameters, rng: random.Random):
        self._entities, self._parameters, self._rng = entities, parameters, rng
        self._knowledge = Knowledge(facts)
        self._by_kind: dict[Kind, list[Entity]] = defaultdict(list)
        for entity in entities:
            self._by_kind[entity.kind].append(entity)
        self._golden = {entity.known_as: tuple(dict.fromkeys((entity.known_as.name, entity.name))) for entity in entities}
        self._tables: dict[tuple[Kind, tuple[str, ...]], dict[Reference, list[Reference]]] = {}
        self._owner: dict[Chain, str] = {}
        self._asked: set[Inquiry] = set()

    def ask(self, passages: Sequence[Passage], where: Mapping[Fact, str]) -> dict[str, tuple[Question, ...]]:
        """All splits, in the order train, dev, test.

        Raises:
            UserError: if the world is too small for so many questions.
        """
        titles = {passage.id: passage.title for passage in passages}
        made = {split: self._split(split, titles, where) for split in _SPLITS}
        return {split: made[split] for split in reversed(_SPLITS)}

    def _split(self, split: str, titles: Mapping[str, str], where: Mapping[Fact, str]) -> tuple[Question, ...]:
        wanted = int(getattr(self._parameters, split))
        hops = [number for number, count in enumerate(_shares(self._parameters.hops, wanted), start=1) for _ in range(count)]
        self._rng.shuffle(hops)
        return tuple(
            self._question(f"{split}-{number}", split, self._draw(length, split), titles, where)
            for number, length in enumerate(hops, start=1)
        )

    def _draw(self, hops: int, split: str) -> tuple[Inquiry, str]:
        """A new inquiry of so many hops, and its text, with no chain that another split has."""
        # Form and answer to a yes/no question are drawn once: drawn anew after a failure, they would favour what seldom fails.
        compared = hops in (2, 4) and self._rng.random() < self._parameters.comparisons
        # The two chains of a comparison are searched side by side, so it takes half as many searches one after another.
        compared = compared or hops > self._parameters.max_searches
        ordered, wants_yes = hops == 2 and self._rng.random() < 0.5, self._rng.random() < 0.5
        for _ in range(_PATIENCE):
            if not compared:
                inquiry = self._single(hops)
            else:
                inquiry = self._which_first() if ordered else self._is_same(hops // 2, wants_yes)
            if inquiry is None or any(self._owner.get(chain, split) != split for chain in inquiry.chains):
                continue
            if inquiry in self._asked or len(self._knowledge.answers(inquiry)) != 1:
                continue
            self._asked |= {inquiry, Inquiry(inquiry.form, inquiry.chains[::-1])}
            self._owner.update(dict.fromkeys(inquiry.chains, split))
            natural = self._parameters.paraphrases > 1 and self._rng.random() < 0.5
            return inquiry, write_question(inquiry, natural=natural)
        kind = "comparisons" if compared else "questions"
        raise UserError(
            f"{split}: {len(self._entities)} entities give too few {kind} of {hops} hops (at most"
            f" {self._parameters.max_searches} searches); raise entities or max_searches, ask less, or change hops"
        )

    def _single(self, hops: int) -> Inquiry | None:
        start = self._rng.choice(self._entities)
        chain = self._chain(start, hops)
        return Inquiry(Form.END, (chain,)) if chain is not None else None

    def _chain(self, start: Entity, hops: int) -> Chain | None:
        """A random chain that meets nothing twice and costs no more searches than allowed; None if this draw failed."""
        chain, kind = Chain(start.known_as, ()), start.kind
        for _ in range(hops):
            options = OF_KIND[kind]
            if not options:
                return None
            relation = self._rng.choice(options)
            chain, kind = Chain(chain.start, (*chain.relations, relation.noun)), relation.object
        return chain if self._is_fair(self._knowledge.walk(chain)) else None

    def _is_fair(self, walk: Walk) -> bool:
        met = [walk.used[0].subject, *(fact.object for fact in walk.used)]
        return len(met) == len(set(met)) and self._is_affordable([walk])

    def _is_affordable(self, walks: Sequence[Walk]) -> bool:
        return _searches(walks) <= self._parameters.max_searches

    def _which_first(self) -> Inquiry | None:
        """Two things with different years."""
        kind = self._rng.choice(list(EARLIER))
        chains = tuple(Chain(one.known_as, (EARLIER[kind][0],)) for one in self._rng.sample(self._by_kind[kind], 2))
        walks = [self._knowledge.walk(chain) for chain in chains]
        return Inquiry(Form.FIRST, chains) if self._is_affordable(walks) and walks[0].at != walks[1].at else None

    def _is_same(self, length: int, wants_yes: bool) -> Inquiry | None:
        """Two starts of one kind whose chains end in the same thing, or do not; None if this draw failed."""
        start = self._rng.choice(self._entities)
        first = self._chain(start, length)
        if first is None:
            return None
        end = self._knowledge.walk(first).at
        table = self._table(start.kind, first.relations)
        others = [one for one in table[end] if one != first.start] if wants_yes else self._apart(table, end)
        if not others:
            return None
        second = Chain(self._rng.choice(others), first.relations)
        # Chains that share a fact on the way ask the same thing twice.
        walks = [self._knowledge.walk(chain) for chain in (first, second)]
        used = [fact for walk in walks for fact in walk.used]
        return Inquiry(Form.SAME, (first, second)) if self._is_affordable(walks) and len(used) == len(set(used)) else None

    def _apart(self, table: Mapping[Reference, list[Reference]], end: Reference) -> list[Reference]:
        return [start for other, starts in table.items() if other != end for start in starts]

    def _table(self, kind: Kind, relations: tuple[str, ...]) -> dict[Reference, list[Reference]]:
        """End to the starts of this kind from which the relations lead there."""
        key = (kind, relations)
        if key not in self._tables:
            table: dict[Reference, list[Reference]] = defaultdict(list)
            for entity in self._by_kind[kind]:
                walk = self._knowledge.walk(Chain(entity.known_as, relations))
                if self._is_fair(walk):
                    table[walk.at].append(entity.known_as)
            self._tables[key] = table
        return self._tables[key]

    def _question(
        self, name: str, split: str, drawn: tuple[Inquiry, str], titles: Mapping[str, str], where: Mapping[Fact, str]
    ) -> Question:
        inquiry, text = drawn
        walks = [self._knowledge.walk(chain) for chain in inquiry.chains]
        support = tuple(dict.fromkeys(where[fact] for walk in walks for fact in walk.used))
        return Question(
            id=name,
            text=text,
            golden_answers=self._answers(inquiry, walks),
            dataset=DATASET,
            supporting_titles=tuple(dict.fromkeys(titles[passage] for passage in support)),
            supporting_ids=support,
            hops=inquiry.hops,
            type=_type(inquiry),
            split=split,
            extra={"searches": _searches(walks)},
        )

    def _answers(self, inquiry: Inquiry, walks: Sequence[Walk]) -> tuple[str, ...]:
        """The answer and, for a person with a stage name, the real name beside it."""
        if inquiry.form is Form.END:
            end = walks[0].at
            return self._golden.get(end, (end.name,))
        answer = compare(inquiry, walks[0].at, walks[1].at)
        if inquiry.form is Form.SAME:
            return (answer,)
        return self._golden[Reference(inquiry.chains[0].start.kind, answer)]


def _searches(walks: Sequence[Walk]) -> int:
    """Searches one after another: relations of several chains are looked up side by side, stage names by themselves."""
    names = sum(fact.relation == REAL_NAME for walk in walks for fact in walk.used)
    return names + max(sum(fact.relation != REAL_NAME for fact in walk.used) for walk in walks)


def _type(inquiry: Inquiry) -> str:
    if inquiry.form is Form.END:
        return "single" if inquiry.hops == 1 else "bridge"
    return "yes_no" if inquiry.form is Form.SAME else "comparison"


def _shares(weights: Sequence[float], total: int) -> list[int]:
    """`total` split by weights into whole numbers; what rounding leaves goes to the largest remainders."""
    exact = [weight / sum(weights) * total for weight in weights]
    counts = [int(share) for share in exact]
    order = sorted(range(len(exact)), key=lambda index: (counts[index] - exact[index], index))
    for index in order[: total - sum(counts)]:
        counts[index] += 1
    return counts
