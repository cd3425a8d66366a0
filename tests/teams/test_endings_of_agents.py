"""What each agent's end says, where an episode's reason alone would leave it open."""

from __future__ import annotations

import asyncio

import pytest

from playing import PARIS, FixedRetriever, cast_for, good_lines, play_lines, scripted_model
from searchparty.episodes.store import EpisodeWriter, read_episodes
from searchparty.episodes.types import AgentEnd, StopReason
from searchparty.errors import Failure, FailureKind
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.scoring import score_episode
from searchparty.models.stops import first_stop_end
from searchparty.models.types import Completion, FinishReason, Generated
from searchparty.questions.types import Question
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical
from searchparty.teams.play import play


def test_an_agent_whose_search_failed_has_failed() -> None:
    broken = Failure("retriever", FailureKind.TIMEOUT, "no reply in 30 s", 4)
    episode = play_lines(Chained(), good_lines(), FixedRetriever(failure=broken))
    assert episode.transcript("searcher.1").end is AgentEnd.FAILED


def test_a_searcher_whose_window_is_full_leaves_the_others_at_work() -> None:
    lines = good_lines(
        leader=["<task>a</task><task>b</task>", "<select>2</select>"],
        searcher=["<search>long</search>", "<report>found</report>", "<search>never asked</search>"],
    )
    episode = play_lines(Hierarchical(), lines, FixedRetriever(("long " * 900,)), context_tokens=4200)
    first, second = episode.transcript("searcher.1"), episode.transcript("searcher.2")
    assert (first.end, second.end) == (AgentEnd.CONTEXT_FULL, AgentEnd.FINISHED)
    assert episode.stop_reason is StopReason.ANSWERED


def test_a_window_that_the_engine_finds_full_is_no_failure_of_a_service() -> None:
    full = Failure("model", FailureKind.CONTEXT_OVERFLOW, "too long")
    episode = play_lines(Chained(), good_lines(answerer=[full]))
    assert (episode.stop_reason, episode.transcript("answerer.1").end) == (StopReason.CONTEXT_FULL, AgentEnd.CONTEXT_FULL)


def test_one_well_formed_candidate_makes_the_answerer_finished_but_the_answer_is_the_firsts() -> None:
    episode = play_lines(Chained(candidates=2), good_lines(answerer=[["Paris", "<answer>Paris</answer>"]]))
    assert (episode.stop_reason, episode.transcript("answerer.1").end) == (StopReason.ANSWERED, AgentEnd.FINISHED)
    assert score_episode(episode, ("Paris",), scorer_named("squad")).answer is None


@pytest.mark.parametrize("surrogate", ["\ud800", "\udfff x"])
def test_a_lone_surrogate_from_anywhere_becomes_a_replacement_character(
    tmp_path_factory: pytest.TempPathFactory, surrogate: str
) -> None:
    question = Question("q", f"Where? {surrogate}", ("Paris",), "nq")
    lines = good_lines(searcher=[f"<search>{surrogate}</search>", f"<report>{surrogate} it is</report>"])
    episode = play_lines(Chained(), lines, FixedRetriever((surrogate,)), question=question)
    path = tmp_path_factory.mktemp("run") / "eval.jsonl"
    with EpisodeWriter(path) as writer:
        writer.write(episode)
    (again,) = read_episodes(path)
    assert again == episode
    assert "\ufffd" in again.question


def test_a_log_probability_that_is_no_number_is_a_malformed_reply() -> None:
    class Broken:
        exchanges_ids = True

        async def generate(self, requests: list[object]) -> list[Generated]:
            return [Generated([Completion("a", [97], [float("nan")], FinishReason.END)])]

        async def close(self) -> None:
            """Nothing to free."""

    model = scripted_model(lambda request: "")
    object.__setattr__(model, "engine", Broken())
    episode = asyncio.run(play(Chained(), PARIS, cast_for(Chained(), model), FixedRetriever()))
    assert episode.stop_reason is StopReason.MODEL_FAILED
    assert "not a finite number" in (episode.detail or "")


def test_a_turn_is_read_with_the_tags_of_its_role_by_whoever_reads_it() -> None:
    episode = play_lines(Chained(), good_lines())
    assert episode.transcript("searcher.1").tags == ["search", "report"]
    assert episode.transcript("answerer.1").tags == ["answer"]


def test_a_stop_string_inside_thinking_does_not_end_the_turn() -> None:
    thinking = "<think>maybe <answer>Lyon</answer> but no</think><answer>Paris</answer>"
    assert first_stop_end(thinking[: thinking.index(" but")], ["</answer>"]) is None
    assert first_stop_end(thinking, ["</answer>"]) == len(thinking)
    episode = play_lines(Chained(), good_lines(answerer=[thinking]))
    assert score_episode(episode, ("Paris",), scorer_named("squad")).answer == "Paris"


def test_a_model_whose_template_knows_thinking_is_given_no_stop_strings() -> None:
    lines = good_lines()
    model = scripted_model(lines)
    model.chat.opens_thinking = True  # type: ignore[union-attr]
    asyncio.run(play(Chained(), PARIS, cast_for(Chained(), model), FixedRetriever()))
    assert all(request.stop == () for request in lines.requests)


def test_an_engine_that_raises_has_failed_that_request_and_is_no_error_of_the_team() -> None:
    class Raising:
        exchanges_ids = True

        async def generate(self, requests: list[object]) -> list[Generated]:
            raise OverflowError("too large")

        async def close(self) -> None:
            """Nothing to free."""

    model = scripted_model(lambda request: "")
    object.__setattr__(model, "engine", Raising())
    episode = asyncio.run(play(Chained(), PARIS, cast_for(Chained(), model), FixedRetriever()))
    assert episode.stop_reason is StopReason.MODEL_FAILED
    assert "OverflowError: too large" in (episode.detail or "")
