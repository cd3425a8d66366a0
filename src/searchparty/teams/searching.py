"""The Searcher's work, the same in the chained and in the hierarchical team.

It must be the same to the letter: the chained team trains the teacher that later scores the hierarchical team's Searchers.
"""

from __future__ import annotations

from dataclasses import dataclass

from searchparty.episodes.types import AgentEnd, StopReason
from searchparty.teams.actions import ActionProblem
from searchparty.teams.agent import Agent, EpisodeStopped
from searchparty.teams.evidence import format_passages
from searchparty.teams.workspace import Workspace

SEARCHER_TAGS = ("search", "report")
SEARCHER_TURNS = {"task": ("task",), "passages": ("passages", "task"), "must_report": ()}


@dataclass
class SearchTask:
    """One Searcher at work on one task. `report` is set once it has reported."""

    searcher: Agent
    task: str
    passages: int
    passage_characters: int
    report: str | None = None
    active: bool = True
    detail: str | None = None
    """Why the task ended without a report."""

    async def turn(self, workspace: Workspace, must_report: bool, told_before: bool) -> None:
        """One turn: a search, whose passages are added to the history, or the report, which ends the task.

        Args:
            must_report: this is its last turn; anything but a report ends the task without one, as does a full window.
            told_before: the next turn will be its last, so passages that it gets now come with that notice.
        """
        try:
            action = await self.searcher.act(*(("report",) if must_report else SEARCHER_TAGS))
        except EpisodeStopped as stop:
            if stop.reason is not StopReason.CONTEXT_FULL:
                raise
            self.active, self.detail = False, stop.detail
            return
        if isinstance(action, ActionProblem):
            self.active, self.detail = False, f"{self.searcher.name}: {action}"
            refused = must_report and action is ActionProblem.NOT_ALLOWED_NOW
            self.searcher.finish(AgentEnd.LIMIT if refused else AgentEnd.INVALID_ACTION, action)
        elif action.tag == "report":
            self.active, self.report = False, action.content
            self.searcher.finish(AgentEnd.FINISHED)
        else:
            hits = await workspace.search(action.content, self.passages, self.searcher)
            self.searcher.tell("passages", passages=format_passages(hits, self.passage_characters), task=self.task)
            if told_before:
                self.searcher.tell("must_report")


def begin_task(
    workspace: Workspace, task: str, passages: int, passage_characters: int, parent: Agent | None = None
) -> SearchTask:
    """Create a Searcher and give it its task: the whole question in the chained team, a sub-task in the hierarchical one."""
    searcher = workspace.agent("searcher", parent)
    searcher.tell("task", task=task)
    return SearchTask(searcher, task, passages, passage_characters)
