"""The Answerer's turn, the same in every team that has one."""

from __future__ import annotations

from searchparty.episodes.types import AgentEnd
from searchparty.teams.actions import ActionProblem
from searchparty.teams.agent import Agent


async def give_answer(agent: Agent, candidates: int = 1) -> Agent:
    """Let an agent answer and return it. Whether the turn holds a well-formed answer is judged where the episode is played."""
    action = await agent.act("answer", candidates=candidates)
    if isinstance(action, ActionProblem):
        agent.finish(AgentEnd.INVALID_ACTION, action)
    else:
        agent.finish(AgentEnd.FINISHED)
    return agent
