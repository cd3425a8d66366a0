"""The hierarchical team, H-MAS of MultiAgent-OPD: a Leader, Searchers in parallel, an Answerer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from searchparty.episodes.types import AgentEnd, StopReason
from searchparty.questions.types import Question
from searchparty.teams.actions import Action, ActionProblem
from searchparty.teams.agent import Agent, EpisodeStopped
from searchparty.teams.answering import ANSWERER_TURNS, give_answer
from searchparty.teams.searching import SEARCHER_TAGS, SEARCHER_TURNS, SearchTask, begin_task
from searchparty.teams.team import Team
from searchparty.teams.workspace import Workspace

STEPS_AFTER_ASSIGNMENT = 3
"""What an assignment still costs at the least: one Searcher turn, the Leader's selection, the answer."""


@dataclass(frozen=True)
class Hierarchical(Team):
    """The Leader assigns sub-tasks to Searchers, reads their reports, may assign again, and selects reports for the Answerer.

    One environment step is one synchronous round: the Leader alone, or all Searchers that have not reported yet, or the
    Answerer. The last step belongs to the Answerer and the one before it to the Leader's selection, so Searchers are told in
    time that their next turn must be the report, and the Leader that it must select now: when its rounds are used up, or
    when the steps left no longer allow an assignment. A Searcher that gives no report leaves the Leader with a note that
    there is none; a Leader that takes no well-formed action ends the episode (INVALID_ACTION, or NO_SELECTION if it was told
    to select).
    """

    name: ClassVar = "hierarchical"
    tags: ClassVar = {"leader": ("task", "select"), "searcher": SEARCHER_TAGS, "answerer": ("answer",)}
    repeatable_tags: ClassVar = ("task",)
    turns: ClassVar = {
        "leader": {
            "question": ("question", "max_tasks", "max_rounds"),
            "reports": ("reports", "selectable"),
            "must_select": (),
        },
        "searcher": SEARCHER_TURNS,
        "answerer": ANSWERER_TURNS,
    }
    prompts: ClassVar = {"leader": "leader", "searcher": "searcher", "answerer": "answerer"}

    minimum_steps: ClassVar = 1 + STEPS_AFTER_ASSIGNMENT

    max_steps: int | None = 12
    max_rounds: int = 5
    """Assignments that the Leader may make."""
    max_tasks: int = 4
    """Sub-tasks of one assignment; more of them are an invalid action."""
    passages: int = 3
    """Passages per query."""
    passage_characters: int = 2000
    """A longer passage is cut there, visibly."""
    candidates: int = 1
    """Completions of the answer call; training uses 5, evaluation 1."""

    async def run(self, question: Question, workspace: Workspace) -> Agent:
        """Assign, search and read until the Leader selects; then answer from the selected reports."""
        leader = workspace.agent("leader")
        leader.tell("question", question=question.text, max_tasks=str(self.max_tasks), max_rounds=str(self.max_rounds))
        work: list[SearchTask] = []
        for round_number in range(1, self.max_rounds + 2):
            workspace.begin_step()
            left = workspace.steps_left
            must_select = round_number > self.max_rounds or (left is not None and left < STEPS_AFTER_ASSIGNMENT)
            action = await leader.act("select") if must_select else await leader.act("task", "select")
            chosen = self._selection(action, work)
            if chosen is not None:
                leader.finish(AgentEnd.FINISHED)
                break
            tasks = self._tasks(action, leader, must_select)
            started = [begin_task(workspace, task, self.passages, self.passage_characters, leader) for task in tasks]
            await self._search(started, workspace)
            first = len(work) + 1
            work += started
            leader.tell("reports", reports=_report_list(started, first), selectable=_selectable(work))
            self._tell_if_last(leader, round_number, workspace)
        workspace.begin_step()
        answerer = workspace.agent("answerer", leader)
        reports = "\n".join(f"Report {number}: {work[number - 1].report}" for number in chosen or ())
        answerer.tell("question", question=question.text, reports=reports or "No report was selected.")
        return await give_answer(answerer, self.candidates)

    async def _search(self, work: Sequence[SearchTask], workspace: Workspace) -> None:
        """Let the Searchers take turns together until each has ended."""
        if workspace.steps_left == STEPS_AFTER_ASSIGNMENT:
            for task in work:
                task.searcher.tell("must_report")
        while active := [task for task in work if task.active]:
            workspace.begin_step()
            left = workspace.steps_left
            await workspace.together([task.turn(workspace, left == 2, left == 3) for task in active])

    def _tell_if_last(self, leader: Agent, round_number: int, workspace: Workspace) -> None:
        left = workspace.steps_left
        if round_number == self.max_rounds or (left is not None and left <= STEPS_AFTER_ASSIGNMENT):
            leader.tell("must_select")

    def _tasks(self, action: Action | ActionProblem, leader: Agent, must_select: bool) -> tuple[str, ...]:
        """The sub-tasks of an assignment. Ends the episode if the Leader's turn is neither that nor a selection."""
        if isinstance(action, Action) and action.tag == "task" and len(action.contents) <= self.max_tasks:
            return action.contents
        if isinstance(action, Action):
            action = ActionProblem.BAD_CONTENT
        refused = must_select and action is ActionProblem.NOT_ALLOWED_NOW
        leader.finish(AgentEnd.LIMIT if refused else AgentEnd.INVALID_ACTION, action)
        raise EpisodeStopped(StopReason.NO_SELECTION if refused else StopReason.INVALID_ACTION, f"{leader.name}: {action}")

    def _selection(self, action: Action | ActionProblem, work: Sequence[SearchTask]) -> list[int] | None:
        """Report numbers of a well-formed selection, `[]` for `none`; None if the action is no such thing."""
        if isinstance(action, ActionProblem) or action.tag != "select":
            return None
        if action.content == "none":
            return []
        if not re.fullmatch(r"\d{1,3}(\s*,\s*\d{1,3})*", action.content):
            return None
        numbers = list(dict.fromkeys(int(number) for number in action.content.split(",")))
        there = all(1 <= number <= len(work) and work[number - 1].report is not None for number in numbers)
        return numbers if there else None


def _selectable(work: Sequence[SearchTask]) -> str:
    """The numbers of the reports that are there, or `none`."""
    return ", ".join(str(number) for number, task in enumerate(work, start=1) if task.report is not None) or "none"


def _report_list(work: Sequence[SearchTask], first: int) -> str:
    lines = []
    for number, task in enumerate(work, start=first):
        lines.append(f"Report {number} (task: {task.task}): {task.report or 'none, the searcher gave no report.'}")
    return "\n".join(lines)
