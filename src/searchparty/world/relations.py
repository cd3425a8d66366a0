"""What can be true in the world: kinds of things, relations between them, and how each relation is put into words.

Every relation is a function: a subject has exactly one object. All words are lower case and few, so that a very small model
with a vocabulary of its own can read and write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a thing is. The value is the word that stands before its name, except for persons and years."""

    PERSON = "person"
    CITY = "city"
    COUNTRY = "country"
    COMPANY = "company"
    FILM = "film"
    BAND = "band"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation. In the templates {s}, {o} and {x} stand for a mention of subject, object and asked-about thing."""

    noun: str
    """Its name, and the word for it in "the director of the film …"."""
    subject: Kind
    object: Kind
    wordings: tuple[str, str, str]
    """Statements without the full stop. The second is the plain one, "the noun of {s} is {o}", which reports use."""
    question: str
    """The natural question; the plain one is "what is the noun of {x}?"."""
    query: str
    """Words that a good query has beside the subject's name; each wording holds at least one of them."""


def _relation(noun: str, subject: Kind, object: Kind, first: str, third: str, question: str, query: str) -> Relation:
    return Relation(noun, subject, object, (first, f"the {noun} of {{s}} is {{o}}", third), question, query)


_P, _C, _L, _F, _M, _B, _Y = Kind.PERSON, Kind.CITY, Kind.COUNTRY, Kind.COMPANY, Kind.FILM, Kind.BAND, Kind.YEAR

# fmt: off
_ALL = (
    _relation("birthplace", _P, _C, "{s} was born in {o}", "{o} is where {s} was born", "where was {x} born?",
              "birthplace born"),
    _relation("birth year", _P, _Y, "{s} was born in the year {o}", "the year {o} saw the birth of {s}",
              "in which year was {x} born?", "birth year born"),
    _relation("employer", _P, _F, "{s} works for {o}", "{o} employs {s}", "which company employs {x}?", "employer works"),
    _relation("teacher", _P, _P, "{s} was taught by {o}", "{o} taught {s}", "who taught {x}?", "teacher taught"),
    _relation("country", _C, _L, "{s} lies in {o}", "{s} belongs to {o}", "in which country does {x} lie?", "country lies"),
    _relation("mayor", _C, _P, "{s} has the mayor {o}", "{o} is the mayor of {s}", "who rules {x} as mayor?", "city mayor"),
    _relation("capital", _L, _C, "{s} has the capital {o}", "{o} is the capital of {s}",
              "which city is the capital of {x}?", "country capital"),
    _relation("president", _L, _P, "{s} has the president {o}", "{o} is the president of {s}",
              "who rules {x} as president?", "country president"),
    _relation("founder", _F, _P, "{s} was founded by {o}", "{o} founded {s}", "who founded {x}?", "company founder founded"),
    _relation("seat", _F, _C, "{s} has its seat in {o}", "{o} is the seat of {s}", "where does {x} have its seat?",
              "company seat"),
    _relation("director", _M, _P, "{s} was directed by {o}", "{o} directed {s}", "who directed {x}?", "film director directed"),
    _relation("producer", _M, _F, "{s} was produced by {o}", "{o} produced {s}", "which company produced {x}?",
              "film producer produced"),
    _relation("release year", _M, _Y, "{s} was released in the year {o}", "the year {o} saw the release of {s}",
              "in which year was {x} released?", "film release year released"),
    _relation("singer", _B, _P, "{s} has the singer {o}", "{o} is the singer of {s}", "who sings in {x}?", "band singer"),
    _relation("home", _B, _C, "{s} has its home in {o}", "{o} is the home of {s}", "where does {x} have its home?",
              "band home"),
    _relation("real name", _P, _P, "{s} is the stage name of {o}", "{o} has the stage name {s}", "who is {x} really?",
              "real name"),
)
# fmt: on

RELATIONS: Mapping[str, Relation] = {relation.noun: relation for relation in _ALL}
"""By noun."""
REAL_NAME = "real name"
"""From a stage name to the name on the person's own page. Never asked for; a search may need it on the way."""
PLAIN = 1
"""The wording that reports use."""
EARLIER: Mapping[Kind, tuple[str, str]] = {Kind.PERSON: ("birth year", "born"), Kind.FILM: ("release year", "released")}
"""For kinds that "which was first" can be asked of: the relation that decides, and the verb."""
OF_KIND: Mapping[Kind, tuple[Relation, ...]] = {
    kind: tuple(relation for relation in _ALL if relation.subject is kind and relation.noun != REAL_NAME) for kind in Kind
}
"""Relations that may be asked about a thing of this kind."""
