"""Small factories for tests of credit: token sequences by hand, and whole episodes that a script played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from playing import PARIS, Lines, good_lines, play_lines
from searchparty.credit.estimators.base import Estimator, GroupCounts, Heard, Samples
from searchparty.credit.evidence import Evidence
from searchparty.credit.gathering import says_something
from searchparty.credit.joining import Head, JoinedSequences
from searchparty.credit.layout import Layout
from searchparty.credit.reward_mix import RewardMix, Rewards
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
        trainable_T, np.where(trainable_T, old_T, 0).astype(np.float32),
    )  # fmt: skip


@dataclass(frozen=True)
class Earned:
    """What one sequence earned."""

    outcome: float
    penalty: float = 0.0
    reference_penalty: float = 0.0


def earned(total: float, *, penalty: float = 0.0) -> Earned:
    """A reward whose outcome, less the penalty, is `total`."""
    return Earned(total + penalty, penalty)


def mixed(
    mix: RewardMix, *, well_formed: bool = True, divergence: float | None = None, **parts: float
) -> tuple[Earned, dict[str, float]]:
    """What a single sequence earns, and its parts as they are shown."""
    rewards = mix.mix(
        lambda part: [parts[part]],
        well_formed=[well_formed],
        divergence_S=np.array([np.nan if divergence is None else divergence]),
    )
    return Earned(rewards.outcome_S[0], rewards.penalty_S[0]), rewards.means()


@dataclass
class Sample:
    """A sequence with what is known of it; arrays have an entry per token."""

    sequence: TokenSequence
    reward: Earned
    teacher_logprobs_T: FloatArray | None = None
    values_T: FloatArray | None = None
    reference_penalty_T: FloatArray | None = None


def sample(reward: float | Earned, tokens: int = 1, **where: Any) -> Sample:
    """A sample whose tokens are all trainable."""
    return Sample(sequence([1] * tokens, **where), reward if isinstance(reward, Earned) else earned(reward))


def floats(values: Sequence[float]) -> FloatArray:
    """An array as models give them."""
    return np.array(values, dtype=np.float32)


def side_by_side(sequences: Sequence[TokenSequence]) -> JoinedSequences:
    """Sequences as estimators see them, each of an agent of its own."""
    lengths_S = np.array([len(one.ids_T) for one in sequences], np.intp)
    layout = Layout(lengths_S, np.concatenate([np.zeros(0, np.bool_), *(one.trainable_T for one in sequences)]))
    return JoinedSequences(
        [Head(one.key, one.role, one.call) for one in sequences],
        np.arange(len(sequences)),
        layout,
        np.concatenate([np.zeros(0, np.int32), *(one.ids_T for one in sequences)]),
        layout.collect([one.old_logprobs_T for one in sequences]),
    )


@dataclass
class Estimated:
    """What an estimator says of each sample, in order: arrays of an entry per token, 0 where none is trained."""

    advantages: list[FloatArray]
    returns: list[FloatArray] | None
    groups: GroupCounts | None


def estimate(estimator: Estimator, samples: Sequence[Sample]) -> Estimated:
    """Hand an estimator its samples side by side, and cut what it says."""
    sequences = side_by_side([one.sequence for one in samples])
    layout = sequences.layout

    outcomes = [(one.reward.outcome, one.reward.penalty, one.reward.reference_penalty) for one in samples]
    rewards = Rewards({}, *np.array(outcomes, np.float64).reshape(-1, 3).T)

    def collected(arrays: Sequence[FloatArray | None]) -> FloatArray:
        pairs = zip(layout.lengths_S.tolist(), arrays, strict=True)
        return layout.collect([np.zeros(tokens, np.float32) if array is None else array for tokens, array in pairs])

    def heard(arrays: Sequence[FloatArray | None]) -> Heard:
        known_S = np.array([array is not None for array in arrays], dtype=np.bool_)
        return Heard(collected(arrays), known_S, np.zeros_like(known_S))

    found = estimator.estimate(
        Samples(
            sequences,
            rewards,
            sequences.logprobs_N,
            heard([one.teacher_logprobs_T for one in samples]),
            heard([one.values_T for one in samples]),
            collected([one.reference_penalty_T for one in samples]),
        )
    )
    returns = None if found.returns_N is None else layout.place(found.returns_N)
    return Estimated(layout.place(found.advantages_N), returns, found.groups)


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
