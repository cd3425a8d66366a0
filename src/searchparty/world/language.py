"""The language of the world, written and read: mentions, statements and questions as text and back.

What is written here can be read here, to the letter; any other sentence is nobody's statement and nobody's question. Knows no
particular world.
"""

from __future__ import annotations

import re
from functools import lru_cache

from searchparty.world.names import NAME_PATTERN
from searchparty.world.relations import EARLIER, PLAIN, RELATIONS, Kind, Relation
from searchparty.world.types import Chain, Fact, Form, Inquiry, Reference

_NAMED: dict[Kind, str] = {
    Kind.PERSON: rf"{NAME_PATTERN}(?: {NAME_PATTERN})?",
    Kind.YEAR: r"\d{4}",
    **{kind: rf"the {kind} {NAME_PATTERN}" for kind in Kind if kind not in (Kind.PERSON, Kind.YEAR)},
}
_QUESTION = re.compile(r"[^.:?\n]*\?")


def state(fact: Fact, wording: int = PLAIN) -> str:
    """The fact as a sentence, with its full stop."""
    return RELATIONS[fact.relation].wordings[wording].format(s=fact.subject.mention, o=fact.object.mention) + "."


def read_facts(text: str) -> list[Fact]:
    """Every fact that some sentence of `text` states, in order, each once. Questions state nothing."""
    pieces = re.split(r"[.:\n]", _QUESTION.sub("\n", text))
    return list(dict.fromkeys(fact for piece in pieces if (fact := _read_statement(piece.strip())) is not None))


def phrase(chain: Chain) -> str:
    """ "the birthplace of the director of the film …". A chain without relations is the mention of its start."""
    words = chain.start.mention
    for noun in chain.relations:
        words = f"the {noun} of {words}"
    return words


def write_question(inquiry: Inquiry, *, natural: bool = False) -> str:
    """The inquiry as a question: plain, or in the natural wording of its last relation."""
    chain = inquiry.chains[0]
    last = RELATIONS[chain.relations[-1]]
    inner = [phrase(Chain(side.start, side.relations[:-1])) for side in inquiry.chains]
    if inquiry.form is Form.SAME:
        return f"do {inner[0]} and {inner[1]} have the same {last.noun}?"
    if inquiry.form is Form.FIRST:
        verb = EARLIER[last.subject][1]
        return f"{'who' if last.subject is Kind.PERSON else 'what'} was {verb} first, {inner[0]} or {inner[1]}?"
    if natural:
        return last.question.format(x=inner[0])
    return f"{'who' if last.object is Kind.PERSON else 'what'} is the {last.noun} of {inner[0]}?"


def read_question(text: str) -> Inquiry | None:
    """What a question means; None if it is no question of this language."""
    text = text.strip()
    if match := re.fullmatch(r"do (.+) and (.+) have the same (.+)\?", text):
        return _compared(Form.SAME, match[1], match[2], match[3])
    if match := re.fullmatch(r"(?:who|what) was (born|released) first, (.+) or (.+)\?", text):
        noun = next(noun for noun, verb in EARLIER.values() if verb == match[1])
        return _compared(Form.FIRST, match[2], match[3], noun)
    if match := re.fullmatch(r"(?:who|what) is (the .+ of .+)\?", text):
        chain = _read_phrase(match[1])
        return Inquiry(Form.END, (chain,)) if chain is not None and chain.relations else None
    for relation in RELATIONS.values():
        if match := re.fullmatch(re.escape(relation.question).replace(r"\{x\}", "(.+)"), text):
            chain = _extended(_read_phrase(match[1]), relation.noun)
            if chain is not None:
                return Inquiry(Form.END, (chain,))
    return None


def read_mention(text: str, kind: Kind) -> Reference | None:
    """The thing of this kind that the words mention; None if they do not."""
    if not re.fullmatch(_NAMED[kind], text):
        return None
    return Reference(kind, text if kind in (Kind.PERSON, Kind.YEAR) else text.removeprefix(f"the {kind} "))


def end_kind(chain: Chain) -> Kind:
    """The kind of thing that stands at the end of a chain."""
    return RELATIONS[chain.relations[-1]].object if chain.relations else chain.start.kind


def _compared(form: Form, first: str, second: str, noun: str) -> Inquiry | None:
    sides = [_extended(_read_phrase(words), noun) for words in (first, second)]
    chains = tuple(side for side in sides if side is not None)
    return Inquiry(form, chains) if len(chains) == 2 and chains[0].relations == chains[1].relations else None


def _read_phrase(text: str) -> Chain | None:
    for noun in RELATIONS:
        if text.startswith(f"the {noun} of "):
            return _extended(_read_phrase(text.removeprefix(f"the {noun} of ")), noun)
    found = (read_mention(text, kind) for kind in Kind)
    return next((Chain(reference, ()) for reference in found if reference is not None), None)


def _extended(chain: Chain | None, noun: str) -> Chain | None:
    """The chain with one relation more; None if there is no such relation of the thing at its end."""
    if chain is None or noun not in RELATIONS or RELATIONS[noun].subject is not end_kind(chain):
        return None
    return Chain(chain.start, (*chain.relations, noun))


def _statement_pattern(relation: Relation, wording: str) -> re.Pattern[str]:
    pattern = re.escape(wording).replace(r"\{s\}", f"(?P<s>{_NAMED[relation.subject]})")
    return re.compile(pattern.replace(r"\{o\}", f"(?P<o>{_NAMED[relation.object]})"))


_STATEMENTS = [
    (relation, _statement_pattern(relation, wording)) for relation in RELATIONS.values() for wording in relation.wordings
]


@lru_cache(100_000)
def _read_statement(sentence: str) -> Fact | None:
    for relation, pattern in _STATEMENTS:
        if match := pattern.fullmatch(sentence):
            subject, object = read_mention(match["s"], relation.subject), read_mention(match["o"], relation.object)
            assert subject is not None and object is not None
            return Fact(subject, relation.noun, object)
    return None
