"""The chained team: its steps, its limits, and what becomes of each ending."""

from __future__ import annotations

import pytest

from playing import FixedRetriever, good_lines, play_lines
from searchparty.episodes.types import AgentEnd, Episode, StopReason
from searchparty.teams.chained import Chained

SEARCH, REPORT = "<search>capital of France</search>", "<report>Paris is the capital.</report>"


def steps_of(episode: Episode, agent: str) -> list[int]:
    return [call.step for call in episode.transcript(agent).calls]


def test_search_report_answer_takes_three_environment_steps() -> None:
    episode = play_lines(Chained(), good_lines())
    assert episode.stop_reason is StopReason.ANSWERED
    assert (episode.steps, steps_of(episode, "searcher.1"), steps_of(episode, "answerer.1")) == (3, [1, 2], [3])
    assert [transcript.end for transcript in episode.agents] == [AgentEnd.FINISHED, AgentEnd.FINISHED]


def test_the_answerer_sees_the_report_and_no_passage() -> None:
    episode = play_lines(Chained(), good_lines(), FixedRetriever(("Lyon is a city.",)))
    seen = episode.transcript("answerer.1").spans[1].text
    assert "Report 1: Paris is the capital." in seen
    assert "Lyon" not in seen
    assert "Lyon is a city." in episode.transcript("searcher.1").spans[3].text


def test_a_searcher_that_keeps_searching_is_told_once_and_then_ends_the_episode() -> None:
    lines = good_lines(searcher=[SEARCH])
    episode = play_lines(Chained(), lines)
    assert episode.stop_reason is StopReason.NO_REPORT
    assert (episode.steps, len(episode.retrievals)) == (4, 3)
    assert (episode.transcript("searcher.1").end, episode.transcript("searcher.1").problem) == (
        AgentEnd.LIMIT,
        "not_allowed_now",
    )
    told = ["No more searches are possible" in request.messages[-1].content for request in lines.requests]
    assert told == [False, False, False, True]


def test_three_searches_then_the_report_use_the_whole_budget_of_five_steps() -> None:
    episode = play_lines(Chained(), good_lines(searcher=[SEARCH, SEARCH, SEARCH, REPORT]))
    assert (episode.stop_reason, episode.steps) == (StopReason.ANSWERED, 5)


def test_a_budget_of_two_steps_leaves_one_report_and_one_answer() -> None:
    lines = good_lines(searcher=[REPORT])
    episode = play_lines(Chained(max_steps=2), lines)
    assert (episode.stop_reason, episode.steps) == (StopReason.ANSWERED, 2)
    assert "No more searches are possible" in lines.requests[0].messages[-1].content


def test_a_budget_without_a_way_to_an_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        Chained(max_steps=1)


@pytest.mark.parametrize("turn", ["I would search for France.", "", "<search>a<report>b</report>", "<search></search>"])
def test_a_searcher_without_a_well_formed_action_ends_the_episode(turn: str) -> None:
    episode = play_lines(Chained(), good_lines(searcher=[turn]))
    assert episode.stop_reason is StopReason.INVALID_ACTION
    assert episode.transcript("searcher.1").end is AgentEnd.INVALID_ACTION
    assert episode.transcript("searcher.1").problem is not None
    assert episode.answering_agent is None


def test_an_answer_out_of_form_is_recorded_as_such() -> None:
    episode = play_lines(Chained(), good_lines(answerer=["Paris"]))
    assert episode.stop_reason is StopReason.INVALID_ANSWER
    assert (episode.transcript("answerer.1").end, episode.transcript("answerer.1").problem) == (
        AgentEnd.INVALID_ACTION,
        "no_tag",
    )


def test_the_answerer_samples_as_many_candidates_as_asked_behind_one_prefix() -> None:
    candidates = ["<answer>Paris</answer>", "Paris", "<answer>Lyon</answer>"]
    episode = play_lines(Chained(candidates=3), good_lines(answerer=[candidates]))
    turns = episode.transcript("answerer.1").last_turn()
    assert [turn.candidate for turn in turns] == [0, 1, 2]
    assert [turn.text for turn in turns] == candidates
    assert episode.stop_reason is StopReason.ANSWERED


def test_a_search_that_finds_nothing_says_so_and_the_episode_goes_on() -> None:
    episode = play_lines(Chained(), good_lines(), FixedRetriever(()))
    assert "No passage was found." in episode.transcript("searcher.1").spans[3].text
    assert episode.stop_reason is StopReason.ANSWERED


def test_a_long_passage_is_cut_visibly() -> None:
    episode = play_lines(Chained(passage_characters=10), good_lines(), FixedRetriever(("abcdefghij klm",)))
    assert "abcdefghij […]" in episode.transcript("searcher.1").spans[3].text
