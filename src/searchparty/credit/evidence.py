"""What is known about a batch of episodes from outside: whether answers are right, and what models think of the tokens.

Arrays are [T], aligned with `ids_T` of the sequence that their key names; only entries at its trainable tokens are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from searchparty.credit.estimators.base import Heard
from searchparty.credit.joining import JoinedSequences
from searchparty.credit.layout import Layout
from searchparty.credit.rewards import JudgedCandidate
from searchparty.credit.types import BoolArray, FloatArray, SequenceKey
from searchparty.episodes.types import AgentEnd, Episode, Transcript

EpisodeKey = tuple[str, int]
"""Question key and sample."""

ArraysByKey = Mapping[SequenceKey, FloatArray]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that credit needs and the episodes do not hold."""

    candidates: Mapping[EpisodeKey, Sequence[JudgedCandidate]]
    """Per episode the judged candidates of its answer call, in their order; empty if nobody answered."""
    teacher_logprobs: ArraysByKey = field(default_factory=dict)
    """The frozen teacher's log-probabilities of the student's own ids."""
    teacher_temperature: float = 1.0
    """The temperature at which the teacher scored."""
    reference_logprobs: ArraysByKey = field(default_factory=dict)
    """The frozen reference's log-probabilities of the same ids, at the temperature at which a teacher scores."""
    old_logprobs: ArraysByKey | None = None
    """The sampling policy's log-probabilities, computed anew; None uses those that were recorded while sampling."""
    values: ArraysByKey = field(default_factory=dict)
    """The critic's values."""
    scores: Mapping[str, Mapping[SequenceKey, float]] = field(default_factory=dict)
    """Rewards computed outside, by the name under which a plan weighs them."""

    def judged(self, episode: Episode) -> Sequence[JudgedCandidate]:
        """The candidates of one episode. Raises ValueError if they are missing or of another number than were sampled."""
        place = f"{episode.question_key}, sample {episode.sample}"
        judged = self.candidates.get((episode.question_key, episode.sample))
        if judged is None:
            raise ValueError(f"{place}: its answer was not judged; every episode needs an entry in candidates")
        answering = episode.answering_agent
        sampled = len(episode.transcript(answering).last_turn()) if answering is not None else 0
        if len(judged) != sampled:
            raise ValueError(f"{place}: {len(judged)} candidates were judged, {sampled} were sampled")
        return judged

    def score(self, name: str, key: SequenceKey, transcript: Transcript) -> float:
        """A reward from outside. An agent that did not finish its part has nothing to score and gets 0.

        Raises:
            ValueError: a finished agent's score is missing or not a finite number.
        """
        score = self.scores.get(name, {}).get(key)
        if score is None and transcript.end is not AgentEnd.FINISHED:
            return 0.0
        if score is None or not np.isfinite(score):
            raise ValueError(f"{key}: its score named {name} is {score}; score it, or leave its episode out")
        return float(score)


def heard(arrays: ArraysByKey, sequences: JoinedSequences, what: str) -> Heard:
    """What a model said of the sequences. Raises ValueError if an array has another length than its sequence (contract 1)."""
    layout = sequences.layout
    lengths = layout.lengths_S.tolist()
    found = [arrays.get(head.key) for head in sequences.heads]
    nothing_T = np.zeros(max(lengths, default=0), np.float32)
    aligned = [nothing_T[:tokens] if array is None else array for array, tokens in zip(found, lengths, strict=True)]
    for head, array, tokens in zip(sequences.heads, aligned, lengths, strict=True):
        if array.shape != (tokens,):
            raise ValueError(f"{head.key}: {what} have shape {array.shape}, the sequence has {tokens} tokens")
    said_N = layout.collect(aligned)
    known_S = np.fromiter((array is not None for array in found), np.bool_, len(found))
    return usable(said_N, known_S, layout)


def usable(said_N: FloatArray, known_S: BoolArray, layout: Layout) -> Heard:
    """What of it are finite numbers, sequence by sequence."""
    broken_S = layout.any(~np.isfinite(said_N))
    return Heard(np.where(np.repeat(broken_S, layout.tokens_S), 0, said_N), known_S & ~broken_S, broken_S)
