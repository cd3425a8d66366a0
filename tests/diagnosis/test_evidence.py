"""The way of the evidence: what was found, reported, selected and answered, and where a wrong episode lost it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from world_factories import play_all

from playing import PARIS, FixedRetriever, good_lines, play_lines
from searchparty.diagnosis.evidence import Interface, carries, journey_of, lost_at
from searchparty.diagnosis.facts import EpisodeFacts, facts_of
from searchparty.diagnosis.passages import SeenPassage, golden_passages, seen_passages
from searchparty.diagnosis.words import names, words_of
from searchparty.episodes.types import SpanKind, StopReason
from searchparty.errors import Failure, FailureKind
from searchparty.evaluation.scorers import SCORERS
from searchparty.questions.types import Question
from searchparty.retrieval.bm25 import BM25Index
from searchparty.teams.baselines import Direct, Rag
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical
from searchparty.world.experts import Expert
from searchparty.world.faults import Faults
from searchparty.world.types import World

SQUAD = SCORERS["squad"]
TITLED = replace(PARIS, supporting_titles=("Title 1",))


def in_the_world(team: str, faults: Faults, world: World, index: BM25Index) -> list[EpisodeFacts]:
    questions = list(world.questions["test"])
    episodes = play_all(team, Expert(world, faults), questions, index)
    return [facts_of(episode, question, SQUAD) for episode, question in zip(episodes, questions, strict=True)]


def lost(facts: list[EpisodeFacts]) -> Counter[Interface]:
    return Counter(one.lost_at for one in facts if one.lost_at is not None)


def told(question: Question = TITLED, **lines: list[str]) -> EpisodeFacts:
    return facts_of(play_lines(Hierarchical(), good_lines(**lines), question=question), question, SQUAD)


def test_a_perfect_team_finds_reports_and_selects_every_golden_passage(world: World, index: BM25Index) -> None:
    facts = in_the_world("hierarchical", Faults(), world, index)
    assert not lost(facts)
    journeys = [one.journey for one in facts]
    assert all(one.golden == one.golden_found == one.golden_reported == one.golden_selected > 0 for one in journeys)


@pytest.mark.parametrize(
    ("team", "faults", "interface"),
    [
        ("hierarchical", Faults(drop_report=1), Interface.SELECTION),
        ("hierarchical", Faults(skip_search=1, skip_task=1), Interface.RETRIEVAL),
        ("chained", Faults(wrong_name=1), Interface.REPORT),
        ("chained", Faults(malformed=1), Interface.FORMAT),
        ("rag", Faults(wrong_name=1), Interface.ANSWER),
    ],
)
def test_an_expert_that_errs_at_one_interface_is_found_there(
    team: str, faults: Faults, interface: Interface, world: World, index: BM25Index
) -> None:
    perfect = lost(in_the_world(team, Faults(), world, index))
    places = lost(in_the_world(team, faults, world, index))
    places.subtract(perfect)
    assert places.most_common(1)[0][0] is interface
    assert places[interface] > 0.8 * sum(count for count in places.values() if count > 0)


def test_an_answerer_that_had_the_evidence_and_says_something_else_loses_it() -> None:
    assert told(answerer=["<answer>Lyon</answer>"]).lost_at is Interface.ANSWER


def test_evidence_that_was_found_and_not_shown_to_whoever_answers_is_lost_on_the_way() -> None:
    episode = play_lines(Rag(), good_lines(answerer=["<answer>Lyon</answer>"]), question=TITLED)
    journey = facts_of(episode, TITLED, SQUAD).journey
    assert (journey.shown, lost_at(episode, journey)) == (True, Interface.ANSWER)
    (answerer,) = [one for one in episode.agents if one.agent == episode.answering_agent]
    answerer.spans[:] = [span for span in answerer.spans if span.kind is not SpanKind.OBSERVATION]
    unseen = replace(journey, shown=False)
    assert lost_at(episode, unseen) is Interface.SELECTION
    assert journey_of(episode, TITLED, None).shown is False


def test_a_passage_that_is_shown_again_with_its_text_has_it() -> None:
    episode = play_lines(Rag(), good_lines(), question=TITLED)
    (answerer,) = [one for one in episode.agents if one.agent == episode.answering_agent]
    silent = replace(answerer, agent="silent.1", spans=[])
    episode.agents.insert(0, silent)
    episode.retrievals.insert(0, replace(episode.retrievals[0], agent="silent.1"))
    assert all(passage.text for passage in seen_passages(episode))


def test_a_leader_that_selects_nothing_loses_the_evidence_at_the_selection() -> None:
    facts = told(leader=["<task>Which city?</task>", "<select>none</select>"], answerer=["<answer>Lyon</answer>"])
    assert facts.lost_at is Interface.SELECTION
    assert (facts.reports, facts.reports_selected) == (1, 0)


def test_a_leader_that_leaves_out_half_of_the_evidence_loses_it_although_the_answer_is_named(
    world: World, index: BM25Index
) -> None:
    facts = in_the_world("hierarchical", Faults(drop_report=1), world, index)
    half = [one for one in facts if one.journey.selected and one.lost_at is Interface.SELECTION]
    assert half
    assert all(0 < (one.journey.golden_selected or 0) < (one.journey.golden_reported or 0) for one in half)


def test_a_team_that_did_not_search_lost_it_there_unless_it_cannot_search() -> None:
    facts = told(searcher=["<report>Lyon it is.</report>"], answerer=["<answer>Lyon</answer>"])
    assert facts.lost_at is Interface.NO_SEARCH
    direct = facts_of(play_lines(Direct(), good_lines(answerer=["<answer>Lyon</answer>"]), question=TITLED), TITLED, SQUAD)
    assert direct.lost_at is Interface.ANSWER


def test_a_failing_service_says_nothing_about_a_role() -> None:
    broken = FixedRetriever(failure=Failure("retriever", FailureKind.TIMEOUT, "late"))
    facts = facts_of(play_lines(Chained(), good_lines(), broken, question=TITLED), TITLED, SQUAD)
    assert facts.lost_at is Interface.SERVICE


def test_a_right_answer_lost_nothing_however_it_was_found() -> None:
    facts = told(searcher=["<report>No idea.</report>"])
    assert facts.exact_match == 1
    assert facts.lost_at is None


def test_what_cannot_be_looked_for_is_unknown() -> None:
    yes = Question("q", "Is Paris in France?", ("yes",), "nq")
    facts = told(yes, answerer=["<answer>no</answer>"])
    assert facts.lost_at is Interface.UNKNOWN
    assert facts.journey.found is None


def test_a_yes_or_no_question_is_followed_by_its_passages() -> None:
    yes = Question("q", "Is it in France?", ("yes",), "nq", supporting_titles=("Title 1",))
    lines = ["<search>it</search>", "<report>Title 1 says: Paris is the capital.</report>"]
    assert told(yes, answerer=["<answer>no</answer>"], searcher=lines).lost_at is Interface.ANSWER
    silent = ["<search>it</search>", "<report>Title 1 says nothing.</report>"]
    assert told(yes, answerer=["<answer>no</answer>"], searcher=silent).lost_at is Interface.REPORT


def test_passages_are_read_back_as_the_team_saw_them() -> None:
    texts = ["Paris is the capital.\nSecond line.", "Passage 1: Title 1\nnot a heading", "Lyon is a city."]
    episode = play_lines(Chained(), good_lines(), FixedRetriever(texts))
    seen = seen_passages(episode)
    assert [passage.id for passage in seen] == ["p1", "p2", "p3"]
    assert [passage.text for passage in seen[:2]] == texts[:2]
    assert seen[2].text.startswith(texts[2])


@given(st.lists(st.text(max_size=60), min_size=1, max_size=3), st.text(max_size=30))
def test_no_passage_text_breaks_the_reading_or_hides_that_it_was_found(texts: list[str], answer: str) -> None:
    question = replace(TITLED, golden_answers=(answer or "x",))
    facts = facts_of(play_lines(Rag(), good_lines(), FixedRetriever(texts), question=question), question, SQUAD)
    assert facts.journey.golden_found == 1
    assert facts.stop_reason == StopReason.ANSWERED


def test_ids_of_supporting_passages_decide_before_titles() -> None:
    seen = [SeenPassage("p1", "Paris", ""), SeenPassage("p2", "Paris", "")]
    question = replace(PARIS, supporting_titles=("Rome",), supporting_ids=("p2", "p9"))
    assert golden_passages(question, seen) == [seen[1], None]
    assert golden_passages(replace(PARIS, supporting_titles=("PARIS ", "Rome")), seen) == [seen[0], None]


def test_a_text_carries_a_passage_if_it_names_it_and_says_more_than_the_question() -> None:
    passage = SeenPassage("p", "Blue Lake", "Blue Lake was released in 1990.")
    question = "Which is older, Blue Lake or Red Hill?"
    assert carries("Blue Lake is from 1990", passage, question)
    assert not carries("Blue Lake is older", passage, question)
    assert not carries("It is from 1990", passage, question)
    assert carries("Blue Lake is from 1990", replace(passage, title="Blue Lake (film)"), question)


@given(st.text(), st.text())
def test_a_phrase_is_named_exactly_where_its_words_stand_together(before: str, phrase: str) -> None:
    assert names(f"{before} {phrase} {before}", phrase) == bool(words_of(phrase))
