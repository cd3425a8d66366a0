"""What an executor is: a step of work on one question, played by an agent of its own or by the retriever.

An executor sees the question, and what executors before it made. Whatever goes wrong with its turn is a problem from a closed
list and has a fallback that its class declares; only a failed model or retriever ends the episode.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from searchparty.episodes.types import AgentEnd, ExecutorUse, PlannerTurn
from searchparty.retrieval.types import Hit
from searchparty.teams.actions import ActionProblem
from searchparty.teams.agent import Agent
from searchparty.teams.rounds import Path, Rounds
from searchparty.teams.workflow import Form
from searchparty.teams.workspace import Workspace


@dataclass
class Task:
    """One question on its way through a workflow, and what has been made for it so far."""

    question: str
    """What is to be answered. No executor changes it: a rewritten query goes to the retriever alone."""
    path: Path
    """Where its line of work lies among the episode's."""
    record: PlannerTurn
    planner: Agent | None
    """None if nobody planned, because the workflow is fixed."""
    query: str
    """What the retriever is asked."""
    is_final: bool
    """Whether its answer is the team's."""
    hits: list[Hit] | None = None
    """None until something was retrieved."""
    search_wanted: bool = False
    """Retrieval is due; the next agent at work asks for it."""
    sub_questions: tuple[str, ...] = ()
    sub_answers: list[str | None] = field(default_factory=list)
    answerer: Agent | None = None
    """The agent whose last turn is the answer."""


@dataclass(frozen=True)
class Desk:
    """What executors work with."""

    workspace: Workspace
    rounds: Rounds
    passages: int
    passage_characters: int
    max_sub_questions: int
    candidates: int
    """Completions of the team's last answer call."""


class Executor(ABC):
    """Base of every executor. It holds no state: the same object works on many questions at once."""

    form: ClassVar[Form]
    """Its abbreviation, what it makes and what it needs."""
    purpose: ClassVar[str]
    """One line for the planner: what it does."""
    fallback: ClassVar[str]
    """One line for people: what is used in place of its work if its turn is not usable."""
    serial: ClassVar[bool] = False
    """For a decomposition: whether its sub-questions are answered one after another, earlier answers filled in."""
    role: ClassVar[str | None]
    """The role of its agent; None for an executor that is no model."""
    tags: ClassVar[tuple[str, ...]] = ()
    turns: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    prompt: ClassVar[str] = ""
    """Name of its built-in prompt."""

    @abstractmethod
    async def work(self, task: Task, desk: Desk) -> None:
        """Do the work: change the task, and add to its record what was used."""

    async def begin(self, task: Task, desk: Desk) -> Agent:
        """Wait for the next environment step and create the executor's agent; if retrieval is due, it asks first."""
        assert self.role is not None
        await desk.rounds.next(task.path)
        agent = desk.workspace.agent(self.role, task.planner)
        if task.search_wanted:
            task.search_wanted = False
            task.hits = await desk.workspace.search(task.query, desk.passages, agent)
        return agent

    def note(self, task: Task, agent: Agent, problem: ActionProblem | None) -> None:
        """Write down how the executor's turn ended."""
        if agent.transcript.end is AgentEnd.LEFT:
            agent.finish(AgentEnd.FINISHED if problem is None else AgentEnd.INVALID_ACTION, problem)
        task.record.uses.append(ExecutorUse(self.form.abbreviation, agent.name, None if problem is None else str(problem)))
