"""A made world: equal from equal parameters, true to its fact table, fair in its questions, clean between its splits."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world_factories import all_questions, small_world

from searchparty.errors import UserError
from searchparty.questions.overlap import find_overlap
from searchparty.questions.types import Question
from searchparty.world.knowledge import Knowledge
from searchparty.world.language import read_facts, read_question
from searchparty.world.parameters import WorldParameters
from searchparty.world.relations import RELATIONS, Kind
from searchparty.world.types import Chain, Inquiry, World

any_world = given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 1.0]))
few = settings(max_examples=20, deadline=None)


def meaning(question: Question) -> Inquiry:
    inquiry = read_question(question.text)
    assert inquiry is not None, question.text
    return inquiry


def test_equal_parameters_make_equal_worlds_and_another_seed_another_world() -> None:
    assert small_world(seed=3) == small_world(seed=3)
    assert small_world(seed=3).passages != small_world(seed=4).passages


def test_more_training_questions_leave_test_dev_and_passages_as_they_are() -> None:
    small, large = small_world(), small_world(train=60)
    assert (small.passages, small.questions["test"], small.questions["dev"]) == (
        large.passages, large.questions["test"], large.questions["dev"],
    )  # fmt: skip


@any_world
@few
def test_every_question_has_exactly_the_one_answer_that_the_fact_table_gives(seed: int, ambiguity: float) -> None:
    world = small_world(seed=seed, ambiguity=ambiguity)
    knowledge = Knowledge(world.facts)
    for question in all_questions(world):
        [answer] = knowledge.answers(meaning(question))
        assert answer == question.golden_answers[0]


@any_world
@few
def test_the_supporting_passages_state_all_that_the_answer_needs(seed: int, ambiguity: float) -> None:
    world = small_world(seed=seed, ambiguity=ambiguity)
    passages = {passage.id: passage for passage in world.passages}
    for question in all_questions(world):
        support = [passages[name] for name in question.supporting_ids]
        read = Knowledge(fact for passage in support for fact in read_facts(passage.text))
        assert read.answers(meaning(question)) == {question.golden_answers[0]}
        for left_out in support:
            rest = Knowledge(fact for passage in support if passage != left_out for fact in read_facts(passage.text))
            assert any(rest.walk(chain).remaining for chain in meaning(question).chains)
        assert list(question.supporting_titles) == list(dict.fromkeys(passage.title for passage in support))


@any_world
@few
def test_splits_share_no_question_and_no_chain_of_relations_from_one_start(seed: int, ambiguity: float) -> None:
    world = small_world(seed=seed, ambiguity=ambiguity)
    assert not find_overlap(all_questions(world)).groups
    chains: dict[str, set[Chain]] = {
        split: {chain for question in questions for chain in meaning(question).chains}
        for split, questions in world.questions.items()
    }
    assert all(not chains[one] & chains[other] for one, other in combinations(chains, 2))


@any_world
@few
def test_each_fact_stands_in_exactly_one_passage_and_no_passage_says_anything_untrue(seed: int, ambiguity: float) -> None:
    world = small_world(seed=seed, ambiguity=ambiguity)
    stated = [(fact, passage.id) for passage in world.passages for fact in read_facts(passage.text)]
    assert Counter(stated) == Counter(world.fact_passages.items())
    assert set(world.facts) == set(world.fact_passages)


@any_world
@few
def test_facts_are_of_the_right_types_and_every_relation_has_one_object(seed: int, ambiguity: float) -> None:
    world = small_world(seed=seed, ambiguity=ambiguity)
    for fact in world.facts:
        relation = RELATIONS[fact.relation]
        assert (fact.subject.kind, fact.object.kind) == (relation.subject, relation.object)
    assert max(Counter((fact.subject, fact.relation) for fact in world.facts).values()) == 1
    country = {fact.subject.name: fact.object.name for fact in world.facts if fact.relation == "country"}
    assert all(country[fact.object.name] == fact.subject.name for fact in world.facts if fact.relation == "capital")


def test_hops_follow_their_weights_and_count_the_relations_of_the_question(world: World) -> None:
    assert Counter(question.hops for question in world.questions["test"]) == {1: 36, 2: 48, 3: 24, 4: 12}
    assert all(question.hops == meaning(question).hops for question in all_questions(world))


def test_no_question_needs_more_searches_than_allowed_and_some_need_more_than_hops(world: World) -> None:
    needed = [(question.hops or 0, int(str(question.extra["searches"]))) for question in all_questions(world)]
    assert max(searches for _, searches in needed) == 3
    assert any(searches > hops for hops, searches in needed)


def test_four_hop_bridges_are_asked_where_four_searches_are_allowed() -> None:
    world = small_world(hops=(0, 0, 0, 1), comparisons=0, max_searches=4)
    assert {(question.type, question.hops) for question in all_questions(world)} == {("bridge", 4)}


def test_yes_and_no_are_about_equally_often_right() -> None:
    world = small_world(entities=300, train=300, hops=(0, 1, 0, 1), comparisons=1)
    answers = Counter(question.golden_answers[0] for question in all_questions(world) if question.type == "yes_no")
    assert 0.4 < answers["yes"] / answers.total() < 0.6


def test_a_person_with_a_stage_name_may_be_named_either_way(world: World) -> None:
    aliases = {entity.alias: entity.name for entity in world.entities if entity.alias}
    people = [question for question in all_questions(world) if question.golden_answers[0] in aliases]
    assert any(len(question.golden_answers) == 2 for question in people)


def test_without_ambiguity_there_are_no_stage_names_and_no_borrowed_ones() -> None:
    world = small_world(ambiguity=0)
    words = [entity.name for entity in world.entities if entity.kind is not Kind.PERSON]
    assert len(words) == len(set(words))
    assert all(entity.alias is None for entity in world.entities)
    full = small_world(ambiguity=1)
    cities = set(full.names(Kind.CITY))
    assert cities & set(full.names(Kind.FILM))
    assert all(entity.alias for entity in full.entities if entity.kind is Kind.PERSON)


def test_distractors_facts_per_passage_and_paraphrases_do_what_they_say() -> None:
    def texts(world: World) -> list[str]:
        return [passage.text for passage in world.passages]

    plain = small_world(distractors=0, paraphrases=1)
    assert set(plain.fact_passages.values()) == {passage.id for passage in plain.passages}
    assert all(re.fullmatch(r"(the [a-z ]+ of [a-z ]+ is [a-z0-9 ]+\. ?)+", text) for text in texts(plain))
    assert all(text.count(".") == 1 for text in texts(small_world(facts_per_passage=1)))
    assert max(text.count(".") for text in texts(small_world(facts_per_passage=4))) == 4
    assert len(texts(small_world(distractors=2))) > len(texts(small_world(distractors=1)))


def test_a_great_many_distractors_in_a_tiny_world_still_end() -> None:
    world = small_world(entities=20, train=4, dev=1, test=1, distractors=20)
    assert len(world.passages) > 1000


def test_all_faults_of_the_parameters_are_shown_at_once() -> None:
    with pytest.raises(UserError) as error:
        WorldParameters(entities=3, ambiguity=2, paraphrases=0, hops=(0, 0, 0, 0))
    assert [line.split(":")[0] for line in error.value.lines] == ["entities", "paraphrases", "ambiguity", "hops"]


@pytest.mark.parametrize("hops", [(1, 2, 3), (-1, 1, 1, 1), (float("nan"), 1, 1, 1), (float("inf"), 1, 1, 1)])
def test_hops_that_are_no_weights_are_refused(hops: tuple[float, float, float, float]) -> None:
    with pytest.raises(UserError, match="four weights"):
        WorldParameters(hops=hops)


def test_hops_that_no_search_budget_can_reach_are_refused() -> None:
    with pytest.raises(UserError, match="max_searches: 2 is too few"):
        WorldParameters(max_searches=2, hops=(1, 1, 1, 0))


def test_a_world_too_small_for_its_questions_is_refused_with_what_to_change() -> None:
    with pytest.raises(UserError, match=r"train: 20 entities give too few questions of 1 hops.*raise entities") as error:
        small_world(entities=20, train=500, hops=(1, 0, 0, 0))
    assert len(error.value.lines) == 1
