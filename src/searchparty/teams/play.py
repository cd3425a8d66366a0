"""Playing one episode: run the team's function, and turn whatever happens into a record with exactly one ending."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from datetime import UTC, datetime

from searchparty.episodes.types import AgentEnd, Episode, StopReason
from searchparty.errors import UserError
from searchparty.questions.types import Question
from searchparty.teams.actions import Action
from searchparty.teams.agent import Agent, EpisodeStopped
from searchparty.teams.answering import read_answers
from searchparty.teams.cast import Cast
from searchparty.teams.escaping import without_surrogates
from searchparty.teams.team import Team
from searchparty.teams.workspace import Listener, SearchService, SilentListener, Workspace


async def play(
    team: Team,
    question: Question,
    cast: Cast,
    retriever: SearchService | None,
    *,
    sample: int = 0,
    seed: int = 0,
    listener: Listener | None = None,
) -> Episode:
    """Let a team attempt a question and return the episode, whatever became of it.

    Args:
        sample: which attempt at this question this is; attempts differ only in the seeds of their calls.
        seed: the run's seed.

    Raises:
        UserError: a prompt file that does not fit the team. Nothing else is raised: failures are endings of the episode.
    """
    question = replace(question, text=without_surrogates(question.text))
    workspace = Workspace(
        cast, team.team_tags(), retriever, question.key, sample, seed, team.max_steps, listener or SilentListener()
    )
    started, clock = datetime.now(UTC).isoformat(timespec="milliseconds"), time.perf_counter()
    answering, detail = None, None
    try:
        answering = await team.run(question, workspace)
        for agent in workspace.agents:
            if agent.transcript.end is AgentEnd.LEFT:
                agent.finish(AgentEnd.FINISHED)
        reason = _judge_answer(answering)
    except EpisodeStopped as stop:
        reason, detail = stop.reason, stop.detail
    except UserError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"
        reason, detail = StopReason.TEAM_ERROR, f"{type(error).__name__}: {error} ({place})"
    order = {agent.name: number for number, agent in enumerate(workspace.agents)}
    transcripts = [agent.transcript for agent in workspace.agents]
    return Episode(
        question_key=question.key,
        dataset=question.dataset,
        question=question.text,
        sample=sample,
        seed=seed,
        team=team.name,
        agents=transcripts,
        retrievals=sorted(workspace.retrievals, key=lambda retrieval: (retrieval.step, order[retrieval.agent])),
        stop_reason=reason,
        steps=workspace.step,
        answering_agent=answering.name if answering else None,
        detail=detail,
        token_exact=all(span.ids is not None for transcript in transcripts for span in transcript.spans),
        template_rewrites_history=any(
            part.model.chat is not None and part.model.chat.rewrites_history for part in cast.values()
        ),
        started=started,
        seconds=time.perf_counter() - clock,
        planner_turns=workspace.planner_turns,
    )


def _judge_answer(agent: Agent) -> StopReason:
    """Whether any candidate of the agent's last turn holds a well-formed answer."""
    answered = any(isinstance(answer, Action) for answer in read_answers(agent.transcript))
    return StopReason.ANSWERED if answered else StopReason.INVALID_ANSWER
