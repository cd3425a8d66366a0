"""What a team is: an ordinary async function over a workspace, with its options, roles and tags declared beside it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from searchparty.episodes.types import AgentEnd, StopReason
from searchparty.questions.types import Question
from searchparty.teams.actions import Action, ActionProblem
from searchparty.teams.agent import Agent, EpisodeStopped
from searchparty.teams.workspace import TeamTags, Workspace


@dataclass(frozen=True)
class Team(ABC):
    """Base of every team. Subclass it as a frozen dataclass; its fields are the options that a recipe may set.

    The same object plays many episodes at once, so it holds no state.
    """

    name: ClassVar[str]
    tags: ClassVar[Mapping[str, tuple[str, ...]]]
    """Every role, with the tags that it may write."""
    repeatable_tags: ClassVar[tuple[str, ...]] = ()
    """Tags of which one turn may hold several."""
    prompts: ClassVar[Mapping[str, str]]
    """Role to the name of its built-in prompt, or to the path of a prompt file beside the team's own file."""
    turns: ClassVar[Mapping[str, Mapping[str, tuple[str, ...]]]] = {}
    """Role to the turns that it is told, with the fields of each; a prompt file that does not fit is refused before a run
    begins. Roles that are not named here are not checked."""
    needs_retriever: ClassVar[bool] = True
    minimum_steps: ClassVar[int] = 1
    """The fewest environment steps in which the team can reach an answer."""

    max_steps: int | None = None
    """Environment steps that an episode may use; None for no limit."""

    def __post_init__(self) -> None:
        """Refuse options that leave no way to an answer. Raises ValueError."""
        if self.max_steps is not None and self.max_steps < self.minimum_steps:
            raise ValueError(f"max_steps is {self.max_steps}, the team {self.name} needs at least {self.minimum_steps}")
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise ValueError(f"{option.name} is {value}, it must be at least 1")

    @abstractmethod
    async def run(self, question: Question, workspace: Workspace) -> Agent:
        """Play one episode and return the agent whose last turn is the answer.

        An episode that cannot go on raises `EpisodeStopped` with its reason. Failures of models and retriever raise it by
        themselves.
        """

    def team_tags(self) -> TeamTags:
        """The tags as the workspace needs them."""
        return TeamTags(dict(self.tags), self.repeatable_tags)


def require(action: Action | ActionProblem, agent: Agent, reason: StopReason = StopReason.INVALID_ACTION) -> Action:
    """Return the action; if the turn held none, end the agent and the episode, the latter with `reason`."""
    if isinstance(action, ActionProblem):
        agent.finish(AgentEnd.INVALID_ACTION, action)
        raise EpisodeStopped(reason, f"{agent.name}: {action}")
    return action
