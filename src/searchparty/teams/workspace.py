"""What a team works with during one episode: agents, the retriever, the count of environment steps.

Whatever happens here is recorded as it happens. A team never sees golden answers, scores or other episodes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from searchparty.episodes.types import AgentEnd, PlannerTurn, Retrieval, RetrievedPassage, Span, StopReason, Transcript
from searchparty.errors import Failure, FailureKind, ServiceFailure
from searchparty.retrieval.types import Hit
from searchparty.teams.agent import Agent, EpisodeStopped, call_seed
from searchparty.teams.cast import Cast, Part
from searchparty.teams.escaping import without_surrogates

T = TypeVar("T")


class SearchService(Protocol):
    """What a workspace needs of a retriever."""

    async def search(self, query: str, k: int) -> list[Hit]:
        """At most k hits, best first. Raises ServiceFailure."""


class Listener(Protocol):
    """Hears of everything as it happens, to show a team at work."""

    def on_span(self, transcript: Transcript, span: Span) -> None:
        """A span was added to an agent's history."""

    def on_search(self, retrieval: Retrieval) -> None:
        """A search came back."""


class SilentListener:
    """Hears and says nothing."""

    def on_span(self, transcript: Transcript, span: Span) -> None:
        """Ignore it."""

    def on_search(self, retrieval: Retrieval) -> None:
        """Ignore it."""


@dataclass(frozen=True)
class TeamTags:
    """The tags of a team: which role may write which, and which a turn may hold several of."""

    by_role: dict[str, tuple[str, ...]]
    repeatable: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every tag that foreign text must not be able to write, `think` among them."""
        return tuple(dict.fromkeys([*(tag for tags in self.by_role.values() for tag in tags), "think"]))


@dataclass
class Workspace:
    """One episode in the making.

    Attributes:
        max_steps: environment steps that the team may use; None for no limit.
        step: the current environment step, from 1; 0 before the first.
    """

    cast: Cast
    tags: TeamTags
    retriever: SearchService | None
    question_key: str
    sample: int
    run_seed: int
    max_steps: int | None = None
    listener: Listener = field(default_factory=SilentListener)
    step: int = 0
    agents: list[Agent] = field(default_factory=list)
    retrievals: list[Retrieval] = field(default_factory=list)
    planner_turns: list[PlannerTurn] = field(default_factory=list)

    def agent(self, role: str, parent: Agent | None = None) -> Agent:
        """Create an agent of a role, with an empty history of its own. `parent` is the agent that gave it its task."""
        if role not in self.cast:
            raise KeyError(f"the team has no role {role!r}; its roles are {', '.join(self.cast)}")
        part = self.cast[role]
        number = 1 + sum(agent.transcript.role == role for agent in self.agents)
        name = f"{role}.{number}"
        agent = Agent(
            Transcript(
                name,
                role,
                part.model.identity,
                parent.name if parent else None,
                tags=list(self.tags.by_role.get(role, ())),
                starts_in_thinking=_opens_thinking(part),
            ),
            part,
            own_tags=self.tags.by_role.get(role, ()),
            team_tags=self.tags.all,
            repeatable_tags=self.tags.repeatable,
            next_seed=lambda call: call_seed(self.run_seed, self.question_key, self.sample, name, call),
            current_step=lambda: self.step,
            on_span=self.listener.on_span,
        )
        self.agents.append(agent)
        return agent

    @property
    def steps_left(self) -> int | None:
        """Environment steps that may still begin; None if there is no limit."""
        return None if self.max_steps is None else self.max_steps - self.step

    def begin_step(self) -> int:
        """Begin an environment step: a synchronous round in which every active agent acts once. Returns its number.

        Raises:
            EpisodeStopped: STEP_LIMIT if the budget is used up.
        """
        if self.steps_left == 0:
            raise EpisodeStopped(StopReason.STEP_LIMIT, f"all {self.max_steps} environment steps were used")
        self.step += 1
        return self.step

    async def search(self, query: str, k: int, by: Agent) -> list[Hit]:
        """Search the corpus on behalf of an agent. An empty list means that nothing was found.

        Raises:
            EpisodeStopped: RETRIEVER_FAILED; a failed search is never shown to an agent as evidence.
        """
        query, started = without_surrogates(query), time.perf_counter()
        hits: list[Hit] = []
        failure: Failure | None = None
        if self.retriever is None:
            failure = Failure("retriever", FailureKind.UNREACHABLE, "the run has no index; give one with --index", 0)
        else:
            try:
                hits = await self.retriever.search(query, k)
            except ServiceFailure as error:
                failure = error.failure
        found = [RetrievedPassage(hit.passage.id, without_surrogates(hit.passage.title), hit.score) for hit in hits]
        retrieval = Retrieval(by.name, self.step, query, k, found, time.perf_counter() - started, failure)
        self.retrievals.append(retrieval)
        self.listener.on_search(retrieval)
        if failure is not None:
            by.finish(AgentEnd.FAILED)
            raise EpisodeStopped(StopReason.RETRIEVER_FAILED, f"{by.name}: {failure.kind}: {failure.detail}")
        return hits

    async def together(self, work: Sequence[Awaitable[T]]) -> list[T]:
        """Run the turns of several agents at once. If one of them stops the episode, the others are cancelled first."""
        return await run_together(work)


def _opens_thinking(part: Part) -> bool:
    return part.model.chat is not None and part.model.chat.opens_thinking


async def run_together(work: Sequence[Awaitable[T]]) -> list[T]:
    """Wait for all; at the first exception cancel the rest, wait until they have ended, and raise it."""
    tasks = [asyncio.ensure_future(item) for item in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
