"""What an episode says that its sequences must be, derived from the spans alone.

Deliberately not by way of `credit.sequences`, which made the signals: two derivations that agree prove more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchparty.credit.types import BoolArray, FloatArray, SequenceKey
from searchparty.episodes.types import Episode, Span, SpanKind, Transcript

CONTEXT = 24
"""Characters shown before and after a token."""
NO_ID = -(2**62)
"""Stands for an id that no array could hold."""


@dataclass(slots=True)
class History:
    """One agent's history up to and with one candidate of its last turn; arrays are [T]."""

    key: SequenceKey
    role: str
    call: int
    """The call that sampled the candidate."""
    ids_T: NDArray[np.int64]
    own_T: BoolArray
    """The tokens that this sequence trains: those of its candidate, and in the first candidate those of earlier turns."""
    logprobs_T: FloatArray
    """As recorded while sampling, at its own tokens; 0 elsewhere."""
    shared: int
    """Tokens before the candidate: the prefix of all candidates of the call."""
    spans: Sequence[Span]
    bounds: Sequence[int]
    """Span n is at `bounds[n] : bounds[n + 1]`."""

    @property
    def call_key(self) -> tuple[str, int, str]:
        """What the candidates of one last turn share: question, sample and agent."""
        return self.key.question_key, self.key.sample, self.key.agent

    def near(self, token: int) -> str:
        """The text around a token, as far as the text of its span shows it, and in which span it stands."""
        number = int(np.searchsorted(self.bounds, token, side="right")) - 1
        if not 0 <= number < len(self.spans):
            return "the end"
        span = self.spans[number]
        share = (token - self.bounds[number]) / (self.bounds[number + 1] - self.bounds[number])
        place = round(share * len(span.text))
        text = span.text[max(0, place - CONTEXT) : place + CONTEXT]
        call = f" of call {span.call}" if span.call is not None else ""
        return f"{text!r} in span {number}, {span.kind}{call}"


def histories(episode: Episode, transcript: Transcript) -> list[History]:
    """One history per candidate of the agent's last turn, in their order; empty if it never acted.

    Args:
        transcript: in order, as `span_fault` sees it, and token-exact.
    """
    actions = [number for number, span in enumerate(transcript.spans) if span.kind is SpanKind.ACTION]
    if not actions:
        return []
    call = transcript.spans[actions[-1]].call
    assert call is not None
    last_turn = [number for number in actions if transcript.spans[number].call == call]
    before = transcript.spans[: last_turn[0]]
    found = []
    for candidate, number in enumerate(last_turn):
        spans = [*before, transcript.spans[number]]
        parts = [_ids(span) for span in spans]
        bounds = [0, *np.cumsum([len(part) for part in parts]).tolist()]
        own_T, logprobs_T = np.zeros(bounds[-1], dtype=np.bool_), np.zeros(bounds[-1], dtype=np.float32)
        for span, start, end in zip(spans, bounds[:-1], bounds[1:], strict=True):
            if span.kind is SpanKind.ACTION and (span is spans[-1] or candidate == 0):
                own_T[start:end] = True
                logprobs_T[start:end] = _logprobs(span, end - start)
        key = SequenceKey(episode.question_key, episode.sample, transcript.agent, candidate)
        ids_T = np.concatenate(parts)
        shared = bounds[-2]
        found.append(History(key, transcript.role, call, ids_T, own_T, logprobs_T, shared, spans, bounds))
    return found


def _ids(span: Span) -> NDArray[np.int64]:
    ids = span.ids or ()
    try:
        return np.fromiter(ids, np.int64, len(ids))
    except OverflowError:
        return np.array([one if abs(one) < 2**62 else NO_ID for one in ids], np.int64)


def _logprobs(span: Span, tokens: int) -> Sequence[float] | float:
    """Of each token of an action; not a number if they were not recorded, or for another number of tokens."""
    return span.logprobs if span.logprobs is not None and len(span.logprobs) == tokens else np.nan
