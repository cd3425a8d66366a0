"""From an episode to the token sequences that can be learned from.

Knows spans and nothing of rewards. Axis suffix `_T`: tokens of one sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def agent_sequences(episode: Episode, transcript: Transcript, *, logprobs_required: bool = True) -> list[TokenSequence]:
    """One sequence per candidate of the agent's last turn, in their order. Empty if it never acted.

    Only the last turn may have several candidates. Earlier turns belong to the sequences of all of them and are trained once,
    in that of the first candidate; in the others they are context like a prompt. What the agent observed after its last turn is
    left out, because nothing was sampled after it.

    Args:
        logprobs_required: False if log-probabilities are computed anew before credit is assigned; those recorded are then
            neither needed nor read.

    Raises:
        UserError: the agent's history is not token-exact, or a sampled span has no log-probabilities.
        ValueError: the record contradicts itself.
    """
    where = f"{episode.question_key}, sample {episode.sample}, {transcript.agent}"
    history, candidates = _split(transcript, where)
    if not candidates:
        return []
    call = candidates[0].call
    assert call is not None
    ids, trainable, logprobs, ends = _side_by_side([*history, *candidates], where, logprobs_required)
    shared = ends[len(history)]
    sequences = []
    for number in range(len(candidates)):
        own = slice(ends[len(history) + number], ends[len(history) + number + 1])
        if number == 0:
            ids_T, trainable_T, old_logprobs_T = ids[: own.stop], trainable[: own.stop], logprobs[: own.stop]
        else:
            ids_T = np.concatenate([ids[:shared], ids[own]])
            trainable_T, old_logprobs_T = np.zeros(len(ids_T), dtype=np.bool_), np.zeros(len(ids_T), dtype=np.float32)
            trainable_T[shared:], old_logprobs_T[shared:] = trainable[own], logprobs[own]
        key = SequenceKey(episode.question_key, episode.sample, transcript.agent, number)
        trained = trainable_T.nonzero()[0]
        sequences.append(TokenSequence(key, transcript.role, call, ids_T, trainable_T, old_logprobs_T, trained))
    return sequences


def token_sequences(episode: Episode, *, logprobs_required: bool = True) -> list[TokenSequence]:
    """The sequences of all agents, in their order; see `agent_sequences`."""
    return [
        sequence
        for transcript in episode.agents
        for sequence in agent_sequences(episode, transcript, logprobs_required=logprobs_required)
    ]


def last_turn_taken(transcript: Transcript) -> list[Span]:
    """The action spans of the last call that was answered, one per candidate; a failed call after it is passed over."""
    actions = [span for span in transcript.spans if span.kind is SpanKind.ACTION]
    return [span for span in actions if span.call == actions[-1].call]


def _split(transcript: Transcript, where: str) -> tuple[list[Span], list[Span]]:
    """The spans that all candidates of the last turn follow, and those candidates."""
    candidates = last_turn_taken(transcript)
    if not candidates:
        return [], []
    first = [span is candidates[0] for span in transcript.spans].index(True)
    history = transcript.spans[:first]
    side_by_side = transcript.spans[first : first + len(candidates)]
    if [span.candidate for span in side_by_side] != list(range(len(candidates))):
        raise ValueError(f"{where}: the candidates of call {candidates[0].call} do not stand side by side from 0 on")
    if any(span.candidate for span in history):
        raise ValueError(f"{where}: a call that is not the last has several candidates")
    return history, candidates


def _side_by_side(
    spans: Sequence[Span], where: str, logprobs_required: bool
) -> tuple[IntArray, BoolArray, FloatArray, list[int]]:
    """All spans one after another: ids, which were sampled, their log-probabilities, and bounds. Span n is at
    `ends[n] : ends[n + 1]`."""
    ids: list[int] = []
    recorded: list[float] = []
    ends = [0]
    for span in spans:
        if span.ids is None:
            raise UserError(
                f"{where}: is not token-exact, so nothing can be trained on it; play the role with a model that exchanges "
                "token ids"
            )
        ids += span.ids
        ends.append(len(ids))
        if logprobs_required and span.kind is SpanKind.ACTION:
            recorded += _recorded_logprobs(span, len(span.ids), where)
    trainable, logprobs = np.zeros(len(ids), dtype=np.bool_), np.zeros(len(ids), dtype=np.float32)
    for span, start, end in zip(spans, ends[:-1], ends[1:], strict=True):
        if span.kind is SpanKind.ACTION:
            trainable[start:end] = True
    if logprobs_required:
        logprobs[trainable.nonzero()[0]] = np.fromiter(recorded, np.float32, len(recorded))
    return np.fromiter(ids, np.int32, len(ids)), trainable, logprobs, ends


def _recorded_logprobs(span: Span, length: int, where: str) -> Sequence[float]:
    if span.logprobs is None:
        raise UserError(
            f"{where}: call {span.call} was recorded without log-probabilities; sample with an engine that returns them, or "
            "have the learner compute them before credit is assigned"
        )
    if len(span.logprobs) != length:
        raise ValueError(f"{where}: call {span.call} has {len(span.logprobs)} log-probabilities for {length} tokens")
    return span.logprobs
