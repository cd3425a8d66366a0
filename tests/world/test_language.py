"""The language of the world: what is written can be read, and nothing else is taken for a statement or a question."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchparty.world.language import read_facts, read_question, state, write_question
from searchparty.world.names import NAME_PATTERN, SYLLABLES
from searchparty.world.relations import EARLIER, OF_KIND, RELATIONS, Kind
from searchparty.world.types import Chain, Fact, Form, Inquiry, Reference

words = st.lists(st.sampled_from(SYLLABLES), min_size=2, max_size=4).map("".join)


def references(kind: Kind) -> st.SearchStrategy[Reference]:
    if kind is Kind.YEAR:
        return st.integers(1000, 9999).map(lambda year: Reference(kind, str(year)))
    names = words | st.tuples(words, words).map(" ".join) if kind is Kind.PERSON else words
    return names.map(lambda name: Reference(kind, name))


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    relation = draw(st.sampled_from(list(RELATIONS.values())))
    return Fact(draw(references(relation.subject)), relation.noun, draw(references(relation.object)))


@st.composite
def inquiries(draw: st.DrawFn) -> Inquiry:
    form = draw(st.sampled_from(Form))
    if form is Form.FIRST:
        kind = draw(st.sampled_from(list(EARLIER)))
        relations: tuple[str, ...] = (EARLIER[kind][0],)
    else:
        kind = draw(st.sampled_from([kind for kind in Kind if OF_KIND[kind]]))
        relations, at = (), kind
        for _ in range(draw(st.integers(1, 4))):
            if OF_KIND[at]:
                relation = draw(st.sampled_from(OF_KIND[at]))
                relations, at = (*relations, relation.noun), relation.object
    starts = [draw(references(kind)) for _ in range(1 if form is Form.END else 2)]
    return Inquiry(form, tuple(Chain(start, relations) for start in starts))


@given(st.lists(st.tuples(facts(), st.integers(0, 2)), max_size=4))
def test_every_statement_is_read_back_as_its_fact_in_every_wording(stated: list[tuple[Fact, int]]) -> None:
    text = " ".join(state(fact, wording) for fact, wording in stated)
    assert read_facts(text) == list(dict.fromkeys(fact for fact, _ in stated))


@given(inquiries(), st.booleans())
def test_every_question_is_read_back_as_what_it_asks(inquiry: Inquiry, natural: bool) -> None:
    assert read_question(write_question(inquiry, natural=natural)) == inquiry


@given(inquiries(), st.booleans())
def test_a_question_states_nothing(inquiry: Inquiry, natural: bool) -> None:
    assert read_facts(f"Report 1 (task: {write_question(inquiry, natural=natural)}): nothing was found.") == []


def test_facts_are_read_out_of_numbered_reports_and_passages() -> None:
    text = (
        "Report 1 (task: who directed the film dazu?): the director of the film dazu is bilo.\nPassage 2: bilo\nbilo was there."
    )
    assert read_facts(text) == [Fact(Reference(Kind.FILM, "dazu"), "director", Reference(Kind.PERSON, "bilo"))]


@pytest.mark.parametrize(
    "text",
    ["", "who?", "who is the director of the city dazu?", "do the film dazu and the city bilo have the same mayor?", "Dazu"],
)
def test_anything_else_is_no_question(text: str) -> None:
    assert read_question(text) is None


def test_no_word_of_the_language_looks_like_a_name() -> None:
    texts = [*(wording for relation in RELATIONS.values() for wording in relation.wordings), *RELATIONS]
    texts += [relation.question for relation in RELATIONS.values()] + [relation.query for relation in RELATIONS.values()]
    found = {word for text in texts for word in re.findall(r"\b[a-z]+\b", re.sub(r"\{.\}", "", text))}
    assert not [word for word in found if re.fullmatch(NAME_PATTERN, word)]


def test_every_wording_holds_a_word_of_a_good_query() -> None:
    for relation in RELATIONS.values():
        mentions = "" if relation.object in (Kind.PERSON, Kind.YEAR) else f" {relation.object}"
        mentions += "" if relation.subject in (Kind.PERSON, Kind.YEAR) else f" {relation.subject}"
        for wording in relation.wordings:
            text = set((wording + mentions).split())
            near = {word for query in relation.query.split() for word in text if word[:4] == query[:4]}
            assert near, (relation.noun, wording)
