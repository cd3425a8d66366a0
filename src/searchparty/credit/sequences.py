"""From an episode to the token sequences that can be learned from.

Knows spans and nothing of rewards. Axis suffix `_T`: tokens of one sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    shared, first_end = ends[len(history)], ends[len(history) + 1]
    key = SequenceKey(episode.question_key, episode.sample, transcript.agent, 0)
    trained = trainable[:first_end].nonzero()[0]
    first = TokenSequence(key, transcript.role, call, ids[:first_end], trainable[:first_end], logprobs[:first_end], trained)
    return [first, *_others(first, shared, ids, logprobs, ends[len(history) + 1 :])]


def _others(
    first: TokenSequence, shared: int, ids: IntArray, logprobs: FloatArray, ends: Sequence[int]
) -> Iterator[TokenSequence]:
    """The further candidates, which lie between `ends` and follow the first `shared` tokens of the first."""
    for number, (start, end) in enumerate(pairwise(ends), start=1):
        length = shared + end - start
        ids_T = np.empty(length, dtype=np.int32)
        ids_T[:shared], ids_T[shared:] = ids[:shared], ids[start:end]
        trainable_T, old_logprobs_T = np.zeros(length, dtype=np.bool_), np.zeros(length, dtype=np.float32)
        trainable_T[shared:], old_logprobs_T[shared:] = True, logprobs[start:end]
        yield TokenSequence(
            first.key._replace(candidate=number),
            first.role,
            first.call,
            ids_T,
            trainable_T,
            old_logprobs_T,
            np.arange(shared, length),
        )


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
    spans = transcript.spans
    place = last = next((place for place in reversed(range(len(spans))) if spans[place].kind is SpanKind.ACTION), -1)
    if last < 0:
        return [], []
    call = spans[last].call
    while place > 0 and spans[place - 1].kind is SpanKind.ACTION and spans[place - 1].call == call:
        place -= 1
    history, candidates = spans[:place], spans[place : last + 1]
    if [span.candidate for span in candidates] != list(range(len(candidates))):
        raise ValueError(f"{where}: the candidates of call {call} do not stand side by side from 0 on")
    if any(span.candidate for span in history):
        raise ValueError(f"{where}: a call that is not the last has several candidates")
    if any(span.call == call for span in history):
        raise ValueError(f"{where}: the candidates of call {call} do not stand side by side from 0 on")
    return history, candidates


def _side_by_side(
    spans: Sequence[Span], where: str, logprobs_required: bool
) -> tuple[IntArray, BoolArray, FloatArray, list[int]]:
    """All spans one after another: ids, which were sampled, their log-probabilities, and bounds. Span n is at
    `ends[n] : ends[n + 1]`."""
    ids: list[int] = []
    recorded: list[float] = []
    ends = [0]
    sampled = []
    for span in spans:
        if span.ids is None:
            raise UserError(
                f"{where}: is not token-exact, so nothing can be trained on it; play the role with a model that exchanges "
                "token ids"
            )
        start = len(ids)
        ids += span.ids
        ends.append(len(ids))
        if span.kind is SpanKind.ACTION:
            sampled.append(slice(start, len(ids)))
            if logprobs_required:
                recorded += _recorded_logprobs(span, len(span.ids), where)
    trainable, logprobs = np.zeros(len(ids), dtype=np.bool_), np.zeros(len(ids), dtype=np.float32)
    recorded_N, taken = np.fromiter(recorded, np.float32, len(recorded)), 0
    for part in sampled:
        trainable[part] = True
        if logprobs_required:
            before, taken = taken, taken + part.stop - part.start
            logprobs[part] = recorded_N[before:taken]
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
