"""The chained team, C-MAS of MultiAgent-OPD: a Searcher, then an Answerer that sees its report alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from searchparty.episodes.types import AgentEnd, StopReason
from searchparty.questions.types import Question
from searchparty.teams.agent import Agent, EpisodeStopped
from searchparty.teams.answering import ANSWERER_TURNS, give_answer
from searchparty.teams.searching import SEARCHER_TAGS, SEARCHER_TURNS, begin_task
from searchparty.teams.team import Team
from searchparty.teams.workspace import Workspace

REASONS = {
    AgentEnd.LIMIT: StopReason.NO_REPORT,
    AgentEnd.INVALID_ACTION: StopReason.INVALID_ACTION,
    AgentEnd.CONTEXT_FULL: StopReason.CONTEXT_FULL,
}
"""How the episode ends when its only Searcher gave no report."""


@dataclass(frozen=True)
class Chained(Team):
    """The Searcher gets the question, searches, and reports; the Answerer answers from the report.

    One environment step is one turn of the one active agent. The last step belongs to the Answerer, so the Searcher is told in
    the step before the last but one that its next turn must be the report. A Searcher that then does not report ends the
    episode with NO_REPORT; one that takes no well-formed action ends it with INVALID_ACTION.
    """

    name: ClassVar = "chained"
    tags: ClassVar = {"searcher": SEARCHER_TAGS, "answerer": ("answer",)}
    prompts: ClassVar = {"searcher": "searcher", "answerer": "answerer"}
    turns: ClassVar = {"searcher": SEARCHER_TURNS, "answerer": ANSWERER_TURNS}

    minimum_steps: ClassVar = 2

    max_steps: int | None = 5
    passages: int = 3
    """Passages per query."""
    passage_characters: int = 2000
    """A longer passage is cut there, visibly."""
    candidates: int = 1
    """Completions of the answer call; training uses 5, evaluation 1."""

    async def run(self, question: Question, workspace: Workspace) -> Agent:
        """Search until there is a report, then answer from it."""
        work = begin_task(workspace, question.text, self.passages, self.passage_characters)
        if workspace.steps_left == 2:
            work.searcher.tell("must_report")
        while work.active:
            workspace.begin_step()
            left = workspace.steps_left
            await work.turn(workspace, must_report=left == 1, told_before=left == 2)
        if work.report is None:
            raise EpisodeStopped(REASONS[work.searcher.transcript.end], work.detail)
        workspace.begin_step()
        answerer = workspace.agent("answerer", work.searcher)
        answerer.tell("question", question=question.text, reports=f"Report 1: {work.report}")
        return await give_answer(answerer, self.candidates)
