"""Small factories for tests of credit: token sequences by hand, and whole episodes that a script played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from playing import PARIS, Lines, good_lines, play_lines
from searchparty.credit.estimators.base import Sample
from searchparty.credit.evidence import Evidence
from searchparty.credit.gathering import says_something
from searchparty.credit.reward_mix import Reward
from searchparty.credit.sequences import TokenSequence, token_sequences
from searchparty.credit.types import FloatArray, SequenceKey
from searchparty.episodes.types import Episode, SpanKind
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.scoring import score_episode
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical
from searchparty.teams.team import Team

RIGHT, WRONG, BROKEN = "<answer>Paris</answer>", "<answer>Lyon</answer>", "Paris, I think"


def sequence(
    trainable: Sequence[int],
    old_logprobs: Sequence[float] | None = None,
    *,
    question: str = "nq/q1",
    sample: int = 0,
    agent: str = "searcher.1",
    candidate: int = 0,
    call: int = 0,
) -> TokenSequence:
    """A sequence with a 1 for every trainable token; `old_logprobs` has an entry per token."""
    trainable_T = np.array(trainable, dtype=np.bool_)
    old_T = np.zeros(len(trainable)) if old_logprobs is None else np.array(old_logprobs)
    return TokenSequence(
        SequenceKey(question, sample, agent, candidate), agent.split(".")[0], call, np.arange(len(trainable), dtype=np.int32),
        trainable_T, np.where(trainable_T, old_T, 0).astype(np.float32), trainable_T.nonzero()[0],
    )  # fmt: skip


def earned(total: float, *, penalty: float = 0.0) -> Reward:
    """A reward whose outcome, less the penalty, is `total`."""
    return Reward({}, total + penalty, penalty)


def sample(reward: float | Reward, tokens: int = 1, **where: Any) -> Sample:
    """A sample whose tokens are all trainable."""
    return Sample(sequence([1] * tokens, **where), reward if isinstance(reward, Reward) else earned(reward))


def floats(values: Sequence[float]) -> FloatArray:
    """An array as models give them."""
    return np.array(values, dtype=np.float32)


def chained(number: int = 0, answers: Sequence[str] = (RIGHT, WRONG), question: str = "q1", **lines: Any) -> Episode:
    """An episode of the chained team, attempt `number` at the question, with one answer per candidate."""
    return _numbered(Chained(candidates=len(answers)), number, question, good_lines(answerer=[list(answers)], **lines))


def hierarchical(number: int = 0, answers: Sequence[str] = (RIGHT, WRONG), question: str = "q1", **lines: Any) -> Episode:
    """The same of the hierarchical team."""
    return _numbered(Hierarchical(candidates=len(answers)), number, question, good_lines(answerer=[list(answers)], **lines))


def _numbered(team: Team, number: int, question: str, lines: Lines) -> Episode:
    episode = play_lines(team, lines, question=replace(PARIS, id=question))
    episode.sample = number
    for transcript in episode.agents:
        for span in transcript.spans:
            if span.kind is SpanKind.ACTION:
                span.logprobs = [-1.0 - index % 3 for index in range(len(span.ids or ()))]
    return episode


def judge(*episodes: Episode, teacher: float | None = None, **more: Any) -> Evidence:
    """Evidence in which answers are scored as evaluation does. With `teacher`, a teacher finds every token of every sequence
    more likely by that much."""
    scored = [score_episode(episode, PARIS.golden_answers, scorer_named("squad")) for episode in episodes]
    if teacher is not None:
        known = [one for episode in episodes if says_something(episode) for one in token_sequences(episode)]
        more["teacher_logprobs"] = {one.key: one.old_logprobs_T + np.float32(teacher) for one in known}
    return Evidence({one.key: one.candidates for one in scored}, **more)
