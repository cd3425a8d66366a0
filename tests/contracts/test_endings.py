"""Contract 8: every ending has a reason from the closed list, every failure is typed, and asked equals scored."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar

import pytest

from playing import PARIS, FixedRetriever, Lines, cast_for, good_lines, play_lines, scripted_model
from searchparty.episodes.types import AgentEnd, StopReason
from searchparty.errors import Failure, FailureKind
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.scoring import score_episode
from searchparty.evaluation.summary import summarise
from searchparty.questions.types import Question
from searchparty.teams.agent import Agent
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical
from searchparty.teams.play import play
from searchparty.teams.team import Team
from searchparty.teams.workspace import Workspace

SEARCH = "<search>x</search>"
BROKEN_MODEL = Failure("model", FailureKind.RATE_LIMITED, "HTTP 429 four times", 4)
BROKEN_RETRIEVER = Failure("retriever", FailureKind.TIMEOUT, "no reply in 30 s", 4)


@dataclass(frozen=True)
class Wanderer(Team):
    """Takes steps until it is stopped, or raises."""

    name: ClassVar = "wanderer"
    tags: ClassVar = {"answerer": ("answer",)}
    prompts: ClassVar = {"answerer": "direct_answerer"}
    max_steps: int | None = 3
    raises: bool = False

    async def run(self, question: Question, workspace: Workspace) -> Agent:
        while not self.raises:
            workspace.begin_step()
        raise ZeroDivisionError("a bug in the team")


ENDINGS = {
    StopReason.ANSWERED: (Chained(), good_lines(), FixedRetriever(), {}),
    StopReason.INVALID_ANSWER: (Chained(), good_lines(answerer=["Paris"]), FixedRetriever(), {}),
    StopReason.INVALID_ACTION: (Chained(), good_lines(searcher=["Paris"]), FixedRetriever(), {}),
    StopReason.NO_REPORT: (Chained(), good_lines(searcher=[SEARCH]), FixedRetriever(), {}),
    StopReason.NO_SELECTION: (Hierarchical(max_rounds=1), good_lines(leader=["<task>a</task>"]), FixedRetriever(), {}),
    StopReason.STEP_LIMIT: (Wanderer(), good_lines(), FixedRetriever(), {}),
    StopReason.CONTEXT_FULL: (Chained(), good_lines(), FixedRetriever(("long " * 900,)), {"context_tokens": 3500}),
    StopReason.MODEL_FAILED: (Chained(), good_lines(answerer=[BROKEN_MODEL]), FixedRetriever(), {}),
    StopReason.RETRIEVER_FAILED: (Chained(), good_lines(), FixedRetriever(failure=BROKEN_RETRIEVER), {}),
    StopReason.TEAM_ERROR: (Wanderer(raises=True), good_lines(), FixedRetriever(), {}),
}


AGENT_ENDS = {
    StopReason.ANSWERED: [AgentEnd.FINISHED, AgentEnd.FINISHED],
    StopReason.INVALID_ANSWER: [AgentEnd.FINISHED, AgentEnd.INVALID_ACTION],
    StopReason.INVALID_ACTION: [AgentEnd.INVALID_ACTION],
    StopReason.NO_REPORT: [AgentEnd.LIMIT],
    StopReason.NO_SELECTION: [AgentEnd.LIMIT, AgentEnd.FINISHED],
    StopReason.STEP_LIMIT: [],
    StopReason.CONTEXT_FULL: [AgentEnd.CONTEXT_FULL],
    StopReason.MODEL_FAILED: [AgentEnd.FINISHED, AgentEnd.FAILED],
    StopReason.RETRIEVER_FAILED: [AgentEnd.FAILED],
    StopReason.TEAM_ERROR: [],
}


@pytest.mark.parametrize("reason", StopReason)
def test_contract_8_every_ending_has_its_stop_reason_and_is_scored(reason: StopReason) -> None:
    team, lines, retriever, options = ENDINGS[reason]
    episode = play_lines(team, Lines(lines.by_role), retriever, **options)
    assert episode.stop_reason is reason
    assert [transcript.end for transcript in episode.agents] == AGENT_ENDS[reason]
    scored = score_episode(episode, PARIS.golden_answers, scorer_named("squad"))
    assert scored.exact_match == (1.0 if reason is StopReason.ANSWERED else 0.0)
    summary = summarise([scored], team="t", model="m", scorer="squad", samples=1)
    assert summary.behaviour["all"].episodes == summary.quality["nq"].questions == 1


def test_contract_8_a_failed_call_is_recorded_once_where_it_happened() -> None:
    episode = play_lines(Chained(), good_lines(answerer=[BROKEN_MODEL]))
    failures = [call.failure for transcript in episode.agents for call in transcript.calls if call.failure]
    assert failures == [BROKEN_MODEL]
    assert episode.transcript("answerer.1").end is AgentEnd.FAILED


def test_contract_8_a_failed_search_is_recorded_and_never_shown_as_evidence() -> None:
    episode = play_lines(Chained(), good_lines(), FixedRetriever(failure=BROKEN_RETRIEVER))
    assert [retrieval.failure for retrieval in episode.retrievals] == [BROKEN_RETRIEVER]
    assert "No passage was found" not in "".join(span.text for span in episode.transcript("searcher.1").spans[1:])


def test_contract_8_a_history_that_fills_the_window_is_an_ending_and_the_history_is_never_cut() -> None:
    team = Chained()
    model = scripted_model(good_lines(), context_tokens=3500)
    episode = asyncio.run(play(team, PARIS, cast_for(team, model), FixedRetriever(("long " * 900,))))
    transcript = episode.transcript("searcher.1")
    assert transcript.end is AgentEnd.CONTEXT_FULL
    assert "fills the window of 3500" in (episode.detail or "")
    assert sum(len(span.ids or ()) for span in transcript.spans) > 3500


def test_a_turn_gets_only_the_room_that_the_window_leaves_and_the_record_says_so() -> None:
    team = Chained()
    model = scripted_model(good_lines(), context_tokens=3000)
    episode = asyncio.run(play(team, PARIS, cast_for(team, model), FixedRetriever(("x" * 150,))))
    budgets = [call.max_tokens for call in episode.transcript("searcher.1").calls]
    assert budgets[0] == 512
    assert budgets[1] < 512


def test_two_searches_at_once_are_recorded_in_a_fixed_order() -> None:
    lines = good_lines(
        leader=["<task>a</task><task>b</task>", "<select>1</select>"], searcher=[SEARCH, SEARCH, "<report>r</report>"]
    )
    episode = play_lines(Hierarchical(), lines)
    assert [(retrieval.step, retrieval.agent) for retrieval in episode.retrievals] == [(2, "searcher.1"), (2, "searcher.2")]
