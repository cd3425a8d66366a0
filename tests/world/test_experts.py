"""The scripted experts: perfect ones answer nearly everything, imperfect ones err at the rates that they were given."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from world_factories import all_questions, exact_match, play_all, scores, small_world, written_index

from searchparty.episodes.types import Episode, SpanKind, StopReason
from searchparty.errors import UserError
from searchparty.models.types import GenerateRequest, Message, Sampling
from searchparty.retrieval.bm25 import BM25Index
from searchparty.teams.prompts import Prompt, built_in_prompt
from searchparty.world.experts import Expert, world_scripts
from searchparty.world.faults import Faults
from searchparty.world.prompting import NAMES, world_prompt, world_prompt_path
from searchparty.world.relations import RELATIONS
from searchparty.world.types import World


def request(role: str, *turns: str, seed: int = 0, n: int = 1) -> GenerateRequest:
    """Turns of user and assistant in alternation."""
    messages = [Message("assistant" if number % 2 else "user", turn) for number, turn in enumerate(turns)]
    return GenerateRequest(messages, None, Sampling(), seed, n, (), role)


def share(episodes: list[Episode], reason: StopReason) -> float:
    return sum(episode.stop_reason is reason for episode in episodes) / len(episodes)


@pytest.mark.parametrize("prompts", [world_prompt, built_in_prompt])
@pytest.mark.parametrize("team", ["chained", "hierarchical"])
def test_the_perfect_expert_answers_nearly_every_question_with_either_prompts(
    world: World, index: BM25Index, team: str, prompts: Callable[[str], Prompt]
) -> None:
    questions = world.questions["test"]
    episodes = play_all(team, Expert(world), questions, index, prompts)
    assert exact_match(episodes, questions) >= 0.98
    assert share(episodes, StopReason.ANSWERED) == 1


def test_one_search_with_the_question_itself_is_enough_for_one_hop_and_not_for_more(world: World, index: BM25Index) -> None:
    for hops, low, high in ((1, 0.8, 1.0), (3, 0.0, 0.1)):
        questions = [question for question in all_questions(world) if question.hops == hops]
        assert low <= exact_match(play_all("rag", Expert(world), questions, index), questions) <= high


def test_without_evidence_the_expert_only_guesses(world: World, index: BM25Index) -> None:
    questions = [question for question in all_questions(world) if question.type in ("single", "bridge")]
    assert exact_match(play_all("direct", Expert(world), questions, index), questions) < 0.1


def test_four_hop_bridges_fit_the_hierarchical_team_and_not_the_five_steps_of_the_chained_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    world = small_world(entities=150, test=40, hops=(0, 0, 0, 1), comparisons=0, max_searches=4)
    index, questions = written_index(world, tmp_path_factory.mktemp("four")), world.questions["test"]
    assert exact_match(play_all("hierarchical", Expert(world), questions, index), questions) >= 0.95
    assert exact_match(play_all("chained", Expert(world), questions, index), questions) < 0.2
    assert exact_match(play_all("chained", Expert(world), questions, index, max_steps=6), questions) >= 0.95


def test_the_expert_believes_what_it_reads_and_not_what_is_true(world: World) -> None:
    fact = next(fact for fact in world.facts if fact.relation == "birthplace")
    evidence = f"Report 1: the birthplace of {fact.subject.name} is the city zuzuzuzu."
    turn = Expert(world)(request("answerer", f"{evidence}\nquestion: where was {fact.subject.name} born?"))
    assert turn == "<answer>zuzuzuzu</answer>"


def test_worked_examples_of_a_prompt_are_no_evidence_and_a_repeated_task_is_the_same_task(world: World) -> None:
    example = ["Task: who taught bilo zado?\nthe birthplace of dazu zado is the city bilo.", "<report>x</report>"]
    seen = [*example, "Task: where was dazu zado born?"]
    assert Expert(world)(request("searcher", *seen)) == "<search>dazu zado birthplace born</search>"
    seen += ["<search>dazu zado birthplace born</search>", "No passage was found.\nTask: where was dazu zado born?"]
    assert Expert(world)(request("searcher", *seen)) == "<search>dazu zado birthplace</search>"


def test_a_stage_name_costs_one_search_more(world: World) -> None:
    seen = ["task: where was dazu born?"]
    assert Expert(world)(request("searcher", *seen)) == "<search>dazu real name</search>"
    seen += ["<search>dazu real name</search>", "Passage 1: dazu\ndazu is the stage name of bilo zado."]
    assert Expert(world)(request("searcher", *seen)) == "<search>bilo zado birthplace born</search>"


def test_a_search_that_found_nothing_is_tried_with_other_words_and_given_up_in_the_end(world: World) -> None:
    seen = ["task: where was dazu zado born?"]
    turns = []
    for _ in range(4):
        turns.append(str(Expert(world)(request("searcher", *seen))))
        seen += [turns[-1], "No passage was found."]
    assert len(set(turns)) == 4
    assert turns[3] == "<report>nothing was found.</report>"


@given(st.text(max_size=80), st.sampled_from(["searcher", "leader", "answerer", "other"]))
def test_any_text_gets_a_turn_with_an_action(text: str, role: str) -> None:
    expert = Expert(TINY)
    for opening in ("task: ", "question: ", ""):
        turn = str(expert(request(role, opening + text)))
        assert turn.startswith("<")
        assert turn.endswith(">")


TINY = small_world(train=1, dev=1, test=1)


def test_equal_seeds_repeat_a_run_and_each_candidate_errs_on_its_own(world: World) -> None:
    expert = Expert(world, Faults(wrong_name=0.5))
    asked = "Report 1: the birthplace of dazu is the city bilo.\nquestion: where was dazu born?"
    turns = expert(request("answerer", asked, seed=5, n=20))
    assert turns == expert(request("answerer", asked, seed=5, n=20))
    assert len(set(turns)) > 1
    assert 5 <= sum(turn == "<answer>bilo</answer>" for turn in turns) <= 15


@pytest.mark.parametrize(("rate", "least", "most"), [(0.0, 0.0, 0.0), (0.3, 0.2, 0.4), (1.0, 1.0, 1.0)])
def test_malformed_turns_come_at_their_rate(world: World, rate: float, least: float, most: float) -> None:
    expert = Expert(world, Faults(malformed=rate))
    asked = "Report 1: the birthplace of dazu is the city bilo.\nquestion: where was dazu born?"
    turns = [expert(request("answerer", asked, seed=seed)) for seed in range(300)]
    assert least <= sum(turn != "<answer>bilo</answer>" for turn in turns) / len(turns) <= most


def test_an_expert_that_skips_its_second_search_fails_at_more_than_one_hop(world: World, index: BM25Index) -> None:
    questions = [question for question in all_questions(world) if question.type == "bridge"]
    episodes = play_all("chained", Expert(world, Faults(skip_search=1)), questions, index)
    assert exact_match(episodes, questions) < 0.1
    assert all(len(episode.retrievals) == 1 for episode in episodes)


def test_half_of_the_second_searches_skipped_leaves_about_half_of_the_two_hop_questions(world: World, index: BM25Index) -> None:
    questions = [question for question in all_questions(world) if question.type == "bridge" and question.extra["searches"] == 2]
    episodes = play_all("chained", Expert(world, Faults(skip_search=0.5)), questions, index)
    assert 0.35 < exact_match(episodes, questions) < 0.65


def test_a_wrong_name_in_every_report_is_copied_and_not_invented(world: World, index: BM25Index) -> None:
    questions = [question for question in all_questions(world) if question.type == "single"]
    episodes = play_all("chained", Expert(world, Faults(wrong_name=1)), questions, index)
    assert exact_match(episodes, questions) < 0.1
    known = {reference.name for fact in world.facts for reference in (fact.subject, fact.object)}
    assert all(score.answer in known for score in scores(episodes, questions))


@pytest.mark.parametrize(
    "faults", [Faults(skip_task=1), Faults(drop_report=1), Faults(wrong_report=1)], ids=["skip", "drop", "wrong"]
)
def test_a_leader_that_errs_loses_questions_that_its_team_could_answer(world: World, index: BM25Index, faults: Faults) -> None:
    questions = [question for question in all_questions(world) if question.type == "bridge" and question.hops == 2]
    episodes = play_all("hierarchical", Expert(world, faults), questions, index)
    assert exact_match(episodes, questions) < 0.2
    assert share(episodes, StopReason.ANSWERED) == 1


def test_naive_queries_are_the_task_itself(world: World, index: BM25Index) -> None:
    questions = world.questions["dev"]
    episodes = play_all("chained", Expert(world, Faults(naive_query=1)), questions, index)
    assert all(episode.retrievals[0].query == episode.question for episode in episodes)


def test_the_imperfect_expert_plays_every_team_well_below_the_perfect_one(world: World, index: BM25Index) -> None:
    script, questions = world_scripts(world)["world-imperfect"], all_questions(world)
    for team in ("chained", "hierarchical"):
        episodes = play_all(team, script, questions, index)
        assert 0.35 < exact_match(episodes, questions) < 0.75
        assert share(episodes, StopReason.ANSWERED) > 0.75


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_a_rate_outside_0_to_1_is_refused(rate: float) -> None:
    with pytest.raises(UserError, match=r"skip_search: .* is no rate"):
        Faults(skip_search=rate)


def test_good_queries_find_their_passage_and_whole_questions_miss_most(world: World, index: BM25Index) -> None:
    facts = [fact for fact in world.facts if fact.relation != "real name"]
    queries = [f"{fact.subject.name} {RELATIONS[fact.relation].query}" for fact in facts]
    found = index.search(queries, 3)
    hits = [world.fact_passages[fact] in {hit.passage.id for hit in hits} for fact, hits in zip(facts, found, strict=True)]
    assert sum(hits) / len(hits) > 0.97
    bridges = [question for question in all_questions(world) if question.type == "bridge"]
    whole = index.search([question.text for question in bridges], 3)
    complete = [
        set(question.supporting_ids) <= {hit.passage.id for hit in hits} for question, hits in zip(bridges, whole, strict=True)
    ]
    assert sum(complete) / len(complete) < 0.2


def test_histories_are_short_with_the_compact_prompts(world: World, index: BM25Index) -> None:
    episodes = play_all("hierarchical", Expert(world), world.questions["test"], index)
    episodes += play_all("chained", Expert(world), world.questions["test"], index)
    lengths = [
        sum(len(span.text.split()) for span in transcript.spans) for episode in episodes for transcript in episode.agents
    ]
    assert max(lengths) < 300


@pytest.mark.parametrize("name", NAMES)
def test_a_compact_prompt_has_the_turns_of_the_built_in_one(name: str) -> None:
    assert world_prompt(name).turns.keys() == built_in_prompt(name).turns.keys()
    assert len(world_prompt(name).system.split()) < 15
    assert world_prompt_path(name).is_file()


def test_what_an_expert_writes_is_an_action_of_its_transcript(world: World, index: BM25Index) -> None:
    [episode] = play_all("hierarchical", Expert(world), world.questions["test"][:1], index)
    acted = [span.text for transcript in episode.agents for span in transcript.spans if span.kind is SpanKind.ACTION]
    assert acted[0].startswith("<task>")
    assert acted[-1] == f"<answer>{world.questions['test'][0].golden_answers[0]}</answer>"
    assert episode.token_exact
