"""The single-agent teams."""

from __future__ import annotations

from playing import FixedRetriever, good_lines, play_lines
from searchparty.episodes.types import StopReason
from searchparty.teams.baselines import Direct, Rag


def test_direct_answers_in_one_call_without_any_search() -> None:
    retriever = FixedRetriever()
    episode = play_lines(Direct(), good_lines(), retriever)
    assert (episode.stop_reason, episode.steps, retriever.queries) == (StopReason.ANSWERED, 1, [])


def test_rag_searches_the_question_once_and_shows_the_passages() -> None:
    retriever = FixedRetriever(("one", "two", "three", "four"))
    episode = play_lines(Rag(), good_lines(), retriever)
    assert retriever.queries == ["What is the capital of France?"]
    seen = episode.transcript("answerer.1").spans[1].text
    assert "Passage 3: Title 3\nthree" in seen
    assert "four" not in seen
