"""The planned team, MAO-ARAG: a planner chooses a workflow of executors for each question and sub-question.

Where it deviates from the paper: 1. Answer summarization is not planned but follows a decomposition by itself. 2. A
sub-question is not decomposed again unless `max_depth` allows it; the paper names no limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from searchparty.episodes.types import AgentEnd, PlannerTurn, StopReason
from searchparty.questions.types import Question
from searchparty.teams.actions import ActionProblem
from searchparty.teams.agent import Agent, EpisodeStopped
from searchparty.teams.executors.answering import AnswerGenerator, AnswerSummarization
from searchparty.teams.executors.base import Desk, Executor, Task
from searchparty.teams.executors.decomposition import FEWEST, QueryDecompositionParallel, QueryDecompositionSerial, filled_in
from searchparty.teams.executors.retrieval import DocumentSelector, QueryRewriter, RetrievalAgent
from searchparty.teams.rounds import Path, Rounds
from searchparty.teams.team import Team
from searchparty.teams.workflow import Form, Product, Workflow, broken_rule, read_workflow, well_formed
from searchparty.teams.workspace import Workspace

EXECUTORS: tuple[Executor, ...] = (
    QueryDecompositionSerial(), QueryDecompositionParallel(), QueryRewriter(), RetrievalAgent(), DocumentSelector(),
    AnswerGenerator(),
)  # fmt: skip
"""What a planner may choose from."""
SUMMARY = AnswerSummarization()
_EVERYONE = (*EXECUTORS, SUMMARY)


@dataclass(frozen=True)
class Planned(Team):
    """One planner turn a question: it reads the question and which executors may be chosen, and names those that shall answer.

    A decomposition leads to one planner turn for each sub-question, at the same time for a parallel one, with the earlier
    answers filled in for a serial one, and to the summary. A workflow that breaks a rule leaves its question unanswered; the
    one for the episode's own question ends the episode (INVALID_ACTION). An executor whose turn is not usable is replaced by
    its fallback.
    With a fixed `workflow` nobody plans.
    """

    name: ClassVar = "planned"
    executor_classes: ClassVar[tuple[Executor, ...]] = EXECUTORS
    """For a subclass with executors of its own; it must declare `tags`, `turns` and `prompts` for their roles too."""
    tags: ClassVar = {"planner": ("workflow",)} | {one.role: one.tags for one in _EVERYONE if one.role is not None}
    repeatable_tags: ClassVar = ("question",)
    turns: ClassVar = {"planner": {"question": ("question", "executors", "abbreviations")}} | {
        one.role: one.turns for one in _EVERYONE if one.role is not None
    }
    prompts: ClassVar = {"planner": "planner"} | {one.role: one.prompt for one in _EVERYONE if one.role is not None}

    max_steps: int | None = 24
    executors: tuple[str, ...] = tuple(one.form.abbreviation for one in EXECUTORS)
    """Those that are enabled."""
    workflow: str | None = None
    """A fixed workflow in place of a planner, `QR,RA,AG`."""
    sub_workflow: str | None = None
    """What answers the sub-questions of a fixed workflow that decomposes; None takes the fallback workflow."""
    max_depth: int = 1
    """How many decompositions may lie within one another."""
    max_sub_questions: int = 4
    passages: int = 3
    """Passages per search."""
    passage_characters: int = 2000
    """A longer passage is cut there, visibly."""
    candidates: int = 1
    """Completions of the call that answers the episode's own question."""

    def __post_init__(self) -> None:
        """Refuse executors that are not there, and fixed workflows that nobody could carry out. Raises ValueError."""
        super().__post_init__()
        known = [one.form.abbreviation for one in self.executor_classes]
        for name in self.executors:
            if name not in known:
                raise ValueError(f"executors names {name}; there are: {', '.join(known)}")
        if twice := [name for place, name in enumerate(self.executors) if name in self.executors[:place]]:
            raise ValueError(f"executors names {twice[0]} twice; name each once")
        if not well_formed(self._forms, may_decompose=False):
            raise ValueError("executors has none that answers; add AG")
        decomposes = any(one.form.makes is Product.SUB_QUESTIONS for one in self._enabled)
        if decomposes and self.max_sub_questions < FEWEST:
            raise ValueError(f"max_sub_questions is {self.max_sub_questions}, a decomposition has at least {FEWEST}")
        if self.sub_workflow is not None and self.workflow is None:
            raise ValueError("sub_workflow answers the sub-questions of a fixed workflow; give workflow too, or remove it")
        for option, text, deep in (("workflow", self.workflow, False), ("sub_workflow", self.sub_workflow, True)):
            rule = None if text is None else broken_rule(_names(text), self._forms, may_decompose=not deep)
            if rule is not None:
                raise ValueError(f"{option} is {text}, which breaks the rule {rule}")

    @cached_property
    def _enabled(self) -> list[Executor]:
        return [one for one in self.executor_classes if one.form.abbreviation in self.executors]

    @cached_property
    def _forms(self) -> list[Form]:
        return [one.form for one in self._enabled]

    @cached_property
    def fallback_workflow(self) -> tuple[str, ...]:
        """What answers a question whose decomposition failed: the shortest workflow that retrieves, else the shortest."""
        possible = well_formed(self._forms, may_decompose=False)
        retrieving = {form.abbreviation for form in self._forms if form.makes is Product.PASSAGES}
        return next((names for names in possible if retrieving.intersection(names)), possible[0])

    async def run(self, question: Question, workspace: Workspace) -> Agent:
        """Plan and carry out, until the question's own answer is there."""
        rounds = Rounds(workspace)
        desk = Desk(workspace, rounds, self.passages, self.passage_characters, self.max_sub_questions, self.candidates)
        task = await self._answer(question.text, (), desk, None)
        if task.answerer is None:
            raise EpisodeStopped(
                StopReason.INVALID_ACTION, f"planner.1: the workflow breaks the rule {task.record.broken_rule}"
            )
        return task.answerer

    async def _answer(self, question: str, path: Path, desk: Desk, parent: Agent | None) -> Task:
        """Answer a question or sub-question: plan, then let the executors work, each after the other."""
        task, workflow = await self._plan(question, path, desk, parent)
        task.record.executors = list(workflow.executors)
        if workflow.broken_rule is not None:
            task.record.broken_rule = str(workflow.broken_rule)
            return task
        await self._carry_out(workflow.executors, task, desk)
        return task

    async def _plan(self, question: str, path: Path, desk: Desk, parent: Agent | None) -> tuple[Task, Workflow]:
        is_final = not path
        if self.workflow is not None:
            text = self.workflow if is_final else (self.sub_workflow or ",".join(self.fallback_workflow))
            record = PlannerTurn(None, question, [])
            desk.workspace.planner_turns.append(record)
            return Task(question, path, record, None, question, is_final), Workflow(_names(text))
        may_decompose = len(path) < self.max_depth
        offered = [one for one in self._enabled if may_decompose or one.form.makes is not Product.SUB_QUESTIONS]
        await desk.rounds.next(path)
        planner = desk.workspace.agent("planner", parent)
        record = PlannerTurn(planner.name, question, [])
        desk.workspace.planner_turns.append(record)
        planner.tell(
            "question",
            question=question,
            executors="\n".join(f"{one.form.abbreviation}: {one.purpose}" for one in offered),
            abbreviations=", ".join(one.form.abbreviation for one in offered),
        )
        action = await (planner.act("workflow") if is_final else planner.try_to_act("workflow"))
        workflow = read_workflow(action, self._forms, may_decompose=may_decompose)
        if workflow.broken_rule is None:
            planner.finish(AgentEnd.FINISHED)
        elif action is not ActionProblem.CONTEXT_FULL:
            problem = action if isinstance(action, ActionProblem) else ActionProblem.BAD_CONTENT
            planner.finish(AgentEnd.INVALID_ACTION, problem)
        return Task(question, path, record, planner, question, is_final), workflow

    async def _carry_out(self, names: Sequence[str], task: Task, desk: Desk) -> None:
        by_name = {one.form.abbreviation: one for one in self.executor_classes}
        for name in names:
            executor = by_name[name]
            await executor.work(task, desk)
            if executor.form.makes is not Product.SUB_QUESTIONS:
                continue
            if task.sub_questions:
                await self._divide(task, desk, serial=executor.serial)
            else:
                await self._carry_out(self.fallback_workflow, task, desk)

    async def _divide(self, task: Task, desk: Desk, *, serial: bool) -> None:
        """Answer the sub-questions and sum up."""
        task.record.sub_questions, task.record.serial = len(task.sub_questions), serial
        if serial:
            for number, text in enumerate(task.sub_questions):
                own = filled_in(text, task.sub_answers)
                answered = await self._answer(own, (*task.path, number), desk, task.planner)
                task.sub_answers.append(answered.record.answer)
        else:
            work = [
                self._answer(text, (*task.path, number), desk, task.planner) for number, text in enumerate(task.sub_questions)
            ]
            task.sub_answers = [answered.record.answer for answered in await desk.rounds.split(work)]
        await SUMMARY.work(task, desk)


def _names(workflow: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in workflow.split(","))
