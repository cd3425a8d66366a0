"""From an episode to the token sequences that can be learned from.

Knows spans and nothing of rewards. Axis suffix `_T`: tokens of one sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

import numpy as np

from searchparty.credit.types import BoolArray, FloatArray, IndexArray, IntArray, SequenceKey
from searchparty.episodes.types import Episode, Span, SpanKind, Transcript
from searchparty.errors import UserError


@dataclass(slots=True)
class TokenSequence:
    """One agent's history up to and with one candidate of its last turn."""

    key: SequenceKey
    role: str
    call: int
    """Index of the call that sampled the last turn, into the agent's `calls`."""
    ids_T: IntArray
    """Exactly what the engine was given and returned; the last token is the last that was sampled."""
    trainable_T: BoolArray
    """True at the tokens that this sequence trains: sampled, and not trained by another sequence already."""
    old_logprobs_T: FloatArray
    """Log-probability under the sampling policy; 0 where `trainable_T` is False, and everywhere if none was required."""
    trained: IndexArray
    """Positions of the trainable tokens, in order: where `trainable_T` is True."""


def sequences_of(parts: Iterable[tuple[Episode, Transcript]], *, logprobs_required: bool = True) -> list[TokenSequence]:
    """One sequence per candidate of each agent's last turn, in their order. None for an agent that never acted.

    Only the last turn may have several candidates. Earlier turns belong to the sequences of all of them and are trained once,
    in that of the first candidate; in the others they are context like a prompt. What the agent observed after its last turn is
    left out, because nothing was sampled after it.

    Lists become arrays once for all parts: the arrays of a sequence are its cut of arrays that hold all sequences one after
    another, and share no entry with another sequence's.

    Args:
        parts: agents, each with its episode.
        logprobs_required: False if log-probabilities are computed anew before credit is assigned; those recorded are then
            neither needed nor read.

    Raises:
        UserError: an agent's history is not token-exact, or a sampled span has no log-probabilities.
        ValueError: a record contradicts itself.
    """
    found = _Recorded()
    for episode, transcript in parts:
        found.add(episode, transcript, logprobs_required)
    return found.sequences()


def agent_sequences(episode: Episode, transcript: Transcript, *, logprobs_required: bool = True) -> list[TokenSequence]:
    """The sequences of one agent; see `sequences_of`."""
    return sequences_of([(episode, transcript)], logprobs_required=logprobs_required)


def token_sequences(episode: Episode, *, logprobs_required: bool = True) -> list[TokenSequence]:
    """The sequences of all agents, in their order; see `sequences_of`."""
    return sequences_of(((episode, transcript) for transcript in episode.agents), logprobs_required=logprobs_required)


def last_turn_taken(transcript: Transcript) -> list[Span]:
    """The action spans of the last call that was answered, one per candidate; a failed call after it is passed over."""
    actions = [span for span in transcript.spans if span.kind is SpanKind.ACTION]
    last = actions[-1].call if actions else None
    return [span for span in actions if span.call == last]


@dataclass(slots=True)
class _Recorded:
    """The tokens of many agents as they were recorded, every span once, and where the sequences find theirs.

    Every sampled token is trained in one sequence, and sequences stand in the order of the record. So the log-probabilities of
    all trainable tokens, one after another, are those that were recorded.
    """

    heads: list[tuple[SequenceKey, str, int]] = field(default_factory=list)
    """Key, role and call of each sequence."""
    ids: list[Sequence[int]] = field(default_factory=list)
    """Of each span."""
    logprobs: list[Sequence[float]] = field(default_factory=list)
    """Of each sampled span; empty if none are required."""
    pieces: list[slice] = field(default_factory=list)
    """Runs of recorded tokens that make up the sequences, one after another."""
    ends: list[int] = field(default_factory=lambda: [0])
    """Sequence n has the tokens from `ends[n]` to `ends[n + 1]` of all sequences' tokens."""
    sampled: list[tuple[int, int]] = field(default_factory=list)
    """Start among all sequences' tokens, and length, of each sampled span where it is trained."""
    tokens: list[int] = field(default_factory=list)
    """Number of trainable tokens of each sequence."""
    length: int = 0
    """Recorded tokens so far."""

    def add(self, episode: Episode, transcript: Transcript, logprobs_required: bool) -> None:
        """One agent's part."""
        history, candidates = _split(episode, transcript)
        if not candidates:
            return
        spans = [*history, *candidates]
        ids = [span.ids for span in spans if span.ids is not None]
        if len(ids) < len(spans):
            raise UserError(
                f"{_place(episode, transcript)}: is not token-exact, so nothing can be trained on it; play the role with a "
                "model that exchanges token ids"
            )
        self.ids += ids
        lengths = list(map(len, ids))
        ends = list(accumulate(lengths, initial=self.length))
        actions = [number for number, span in enumerate(spans) if span.kind is SpanKind.ACTION]
        if logprobs_required:
            self.logprobs += [_recorded_logprobs(episode, transcript, spans[number], lengths[number]) for number in actions]
        earlier = actions[: -len(candidates)]
        self.sampled += [(self.ends[-1] + ends[number] - self.length, lengths[number]) for number in earlier]
        trained = sum(lengths[number] for number in earlier)
        shared = slice(self.length, ends[len(history)])
        for number, span in enumerate(candidates):
            assert span.call is not None
            own = slice(*ends[len(history) + number : len(history) + number + 2])
            start, tokens = self.ends[-1] + shared.stop - shared.start, own.stop - own.start
            self.pieces += (shared, own)
            self.ends.append(start + tokens)
            self.sampled.append((start, tokens))
            self.tokens.append(tokens if number else trained + tokens)
            key = SequenceKey(episode.question_key, episode.sample, transcript.agent, number)
            self.heads.append((key, transcript.role, span.call))
        self.length = ends[-1]

    def sequences(self) -> list[TokenSequence]:
        """Make the arrays and cut them. `_N` are the trainable tokens of all sequences, `_S` sequences, `_P` sampled spans."""
        recorded = np.fromiter(chain.from_iterable(self.ids), np.int32, self.length)
        ids = np.concatenate([recorded[:0], *map(recorded.__getitem__, self.pieces)])
        starts_P, lengths_P = np.array(self.sampled, np.intp).reshape(-1, 2).T
        trained_N = _ranges(starts_P, lengths_P)
        trainable, old_logprobs = np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.float32)
        trainable[trained_N] = True
        if self.logprobs:
            old_logprobs[trained_N] = np.fromiter(chain.from_iterable(self.logprobs), np.float32, len(trained_N))
        own_N = trained_N - np.repeat(self.ends[:-1], self.tokens)
        trained_ends = np.cumsum([0, *self.tokens]).tolist()
        return [
            TokenSequence(*head, ids[start:end], trainable[start:end], old_logprobs[start:end], own_N[first:last])
            for head, start, end, first, last in zip(
                self.heads, self.ends[:-1], self.ends[1:], trained_ends[:-1], trained_ends[1:], strict=True
            )
        ]


def _ranges(starts: IndexArray, lengths: IndexArray) -> IndexArray:
    """All numbers from each start on, as many as its length says."""
    ends = np.cumsum(lengths)
    return np.arange(lengths.sum()) + np.repeat(starts - ends + lengths, lengths)


def _split(episode: Episode, transcript: Transcript) -> tuple[Sequence[Span], Sequence[Span]]:
    """The spans that all candidates of the last turn follow, and those candidates."""
    spans = transcript.spans
    candidates = last_turn_taken(transcript)
    if not candidates:
        return [], []
    first = next(place for place, span in enumerate(spans) if span is candidates[0])
    history, side_by_side = spans[:first], spans[first : first + len(candidates)]
    if [span.candidate for span in side_by_side] != list(range(len(candidates))):
        raise ValueError(
            f"{_place(episode, transcript)}: the candidates of call {candidates[0].call} do not stand side by side from 0 on"
        )
    if any(span.candidate for span in history):
        raise ValueError(f"{_place(episode, transcript)}: a call that is not the last has several candidates")
    return history, candidates


def _recorded_logprobs(episode: Episode, transcript: Transcript, span: Span, length: int) -> Sequence[float]:
    if span.logprobs is None:
        raise UserError(
            f"{_place(episode, transcript)}: call {span.call} was recorded without log-probabilities; sample with an engine "
            "that returns them, or have the learner compute them before credit is assigned"
        )
    if len(span.logprobs) != length:
        raise ValueError(
            f"{_place(episode, transcript)}: call {span.call} has {len(span.logprobs)} log-probabilities for {length} tokens"
        )
    return span.logprobs


def _place(episode: Episode, transcript: Transcript) -> str:
    return f"{episode.question_key}, sample {episode.sample}, {transcript.agent}"
