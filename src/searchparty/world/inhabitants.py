"""Who and what there is, and what is true of it. Every fact has the type its relation asks for."""

from __future__ import annotations

import random
from collections import defaultdict

from searchparty.world.names import NameMaker, PersonNames
from searchparty.world.parameters import WorldParameters
from searchparty.world.relations import OF_KIND, REAL_NAME, Kind, Relation
from searchparty.world.types import Entity, Fact, Reference

_SHARES = {Kind.CITY: 0.2, Kind.COUNTRY: 0.06, Kind.COMPANY: 0.12, Kind.FILM: 0.16, Kind.BAND: 0.08}
"""Shares of the entities; persons are the rest."""
_NAMED_LIKE_CITIES = (Kind.COMPANY, Kind.FILM, Kind.BAND)
_YEARS = {"birth year": (1900, 1959), "release year": (1960, 2019)}
_FEWEST = 2


class Inhabitants:
    """The entities and the facts about them.

    Attributes:
        entities: all of them, in order of kind.
        facts: one fact per entity and relation, and one per stage name.
    """

    def __init__(self, parameters: WorldParameters, rng: random.Random) -> None:
        self._rng = rng
        self._maker = NameMaker(rng)
        self._ambiguity = parameters.ambiguity
        counts = {kind: max(_FEWEST, int(parameters.entities * share)) for kind, share in _SHARES.items()}
        persons = parameters.entities - sum(counts.values())
        self._person_names = PersonNames(rng, self._maker, persons)
        self._of_kind: dict[Kind, list[Entity]] = {Kind.PERSON: [self._person() for _ in range(persons)]}
        for kind, count in counts.items():
            self._of_kind[kind] = self._named(kind, count)
        self.entities = tuple(entity for entities in self._of_kind.values() for entity in entities)
        self._homes = self._settle()
        self._cities: dict[Entity, list[Entity]] = defaultdict(list)
        for city, country in self._homes.items():
            self._cities[country].append(city)
        self.facts = tuple(self._facts())

    def stranger(self, like: Entity) -> Fact:
        """A fact about a new person whose name is similar to that of `like`, who is a person."""
        name = self._person_names.similar(like.name)
        relation = self._rng.choice(OF_KIND[Kind.PERSON])
        return self._fact(Entity(Kind.PERSON, name), relation)

    def some(self, kind: Kind) -> Entity:
        """Any entity of a kind."""
        return self._rng.choice(self._of_kind[kind])

    def _person(self) -> Entity:
        alias = self._maker.word() if self._rng.random() < self._ambiguity else None
        return Entity(Kind.PERSON, self._person_names.draw(), alias)

    def _named(self, kind: Kind, count: int) -> list[Entity]:
        """Entities with names of one word, some of them borrowed from cities, each name once per kind."""
        cities = [city.name for city in self._of_kind.get(Kind.CITY, [])]
        borrowed = self._rng.sample(cities, min(count, len(cities))) if kind in _NAMED_LIKE_CITIES else []
        names = []
        for number in range(count):
            like_city = self._rng.random() < self._ambiguity and number < len(borrowed)
            names.append(borrowed[number] if like_city else self._maker.word())
        return [Entity(kind, name) for name in names]

    def _settle(self) -> dict[Entity, Entity]:
        """Every city's country; every country gets a city."""
        countries, cities = self._of_kind[Kind.COUNTRY], self._of_kind[Kind.CITY]
        return {
            city: countries[number] if number < len(countries) else self._rng.choice(countries)
            for number, city in enumerate(cities)
        }

    def _facts(self) -> list[Fact]:
        facts = []
        for entity in self.entities:
            if entity.alias is not None:
                facts.append(Fact(entity.known_as, REAL_NAME, entity.own))
            facts += [self._fact(entity, relation) for relation in OF_KIND[entity.kind]]
        return facts

    def _fact(self, entity: Entity, relation: Relation) -> Fact:
        if relation.object is Kind.YEAR:
            return Fact(entity.own, relation.noun, Reference(Kind.YEAR, str(self._rng.randint(*_YEARS[relation.noun]))))
        if relation.noun == "country":
            return Fact(entity.own, relation.noun, self._homes[entity].known_as)
        choice = self._cities[entity] if relation.noun == "capital" else self._of_kind[relation.object]
        while (other := self._rng.choice(choice)) == entity:
            continue
        return Fact(entity.own, relation.noun, other.known_as)
