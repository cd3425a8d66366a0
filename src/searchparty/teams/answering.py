"""The answering turn, the same in every team: how it is taken, and how the answer is read out of it."""

from __future__ import annotations

from searchparty.episodes.types import AgentEnd, Transcript
from searchparty.teams.actions import Action, ActionProblem, TagRules, read_action
from searchparty.teams.agent import Agent

ANSWERER_TURNS = {"question": ("question", "reports")}


async def give_answer(agent: Agent, candidates: int = 1) -> Agent:
    """Let an agent answer and return it. Whether the turn holds a well-formed answer is judged where the episode is played."""
    first = await agent.act("answer", candidates=candidates)
    if any(isinstance(answer, Action) for answer in read_answers(agent.transcript)):
        agent.finish(AgentEnd.FINISHED)
    else:
        assert isinstance(first, ActionProblem)
        agent.finish(AgentEnd.INVALID_ACTION, first)
    return agent


def read_answers(transcript: Transcript) -> list[Action | ActionProblem]:
    """The answer of each candidate of an agent's last turn, strictly extracted from its sampled text and nothing else."""
    rules = TagRules(("answer",), known=tuple(transcript.tags))
    return [read_action(span.text, rules, starts_in_thinking=transcript.starts_in_thinking) for span in transcript.last_turn()]
