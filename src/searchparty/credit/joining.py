"""From agents' histories to token sequences side by side: lists of numbers become arrays once for all of them.

Knows spans and nothing of rewards. Axis suffixes: `_S` sequences, `_Q` spans of sequences, one sequence after another; `_M` and
`_N` as in `layout`, `_A` and `_P` as in `recorded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import NamedTuple

import numpy as np

from searchparty.credit.layout import Layout, slices
from searchparty.credit.recorded import Part, RecordedSpans
from searchparty.credit.types import BoolArray, FloatArray, IndexArray, IntArray, SequenceKey


class Head(NamedTuple):
    """Which sequence it is."""

    key: SequenceKey
    role: str
    call: int
    """Index of the call that sampled the last turn, into the agent's `calls`."""


@dataclass(frozen=True, slots=True)
class JoinedSequences:
    """One sequence per candidate of each agent's last turn, one after another; see `sequences.sequences_of`."""

    heads: Sequence[Head]
    part_S: IndexArray
    """Of which agent each is, as a place among those that were joined."""
    layout: Layout
    ids_M: IntArray
    logprobs_N: FloatArray
    """Log-probability as it was recorded while sampling; 0 everywhere if none was required."""

    def only(self, kept_S: BoolArray) -> JoinedSequences:
        """Some of the sequences."""
        kept_M, kept_N = np.repeat(kept_S, self.layout.lengths_S), np.repeat(kept_S, self.layout.tokens_S)
        return JoinedSequences(
            list(compress(self.heads, kept_S)),
            self.part_S[kept_S],
            self.layout.only(kept_S),
            self.ids_M[kept_M],
            self.logprobs_N[kept_N],
        )


def join(parts: Sequence[Part], *, logprobs_required: bool = True) -> JoinedSequences:
    """The sequences of some agents, in their order. Raises as `sequences.sequences_of` does."""
    recorded = RecordedSpans(parts)
    recorded.check(logprobs_required=logprobs_required)
    own_S = np.flatnonzero(recorded.turn_P)
    agent_S, candidate_S = recorded.agent_P[own_S], recorded.candidate_P[own_S]

    start_S = recorded.start_A[agent_S]
    count_S = recorded.first_A[agent_S] - start_S + 1
    end_S = np.cumsum(count_S)
    span_Q = np.arange(count_S.sum()) + np.repeat(start_S - end_S + count_S, count_S)
    span_Q[end_S - 1] = own_S
    trained_Q = recorded.sampled_P[span_Q] & np.repeat(candidate_S == 0, count_S)
    trained_Q[end_S - 1] = True

    length_Q = recorded.length_P[span_Q]
    trainable_M = np.repeat(trained_Q, length_Q)
    layout = Layout(np.diff(np.cumsum(length_Q)[end_S - 1], prepend=0), trainable_M)
    logprobs_N = np.zeros(int(layout.tokens_S.sum()), np.float32)
    if logprobs_required:
        said = (span.logprobs or () for span in compress(recorded.spans, recorded.sampled_P))
        logprobs_N = np.fromiter(chain.from_iterable(said), np.float32, len(logprobs_N))
    agents = map(recorded.parts.__getitem__, agent_S.tolist())
    heads = [
        Head(SequenceKey(episode.question_key, episode.sample, transcript.agent, candidate), transcript.role, call)
        for (episode, transcript), candidate, call in zip(
            agents, candidate_S.tolist(), recorded.call_P[own_S].tolist(), strict=True
        )
    ]
    return JoinedSequences(heads, recorded.part_A[agent_S], layout, _ids(recorded, span_Q), logprobs_N)


def _ids(recorded: RecordedSpans, span_Q: IndexArray) -> IntArray:
    """The ids of some spans, one after another [M]. A span that is asked for more than once is made into an array once."""
    lists = (span.ids or () for span in recorded.spans)
    ids = np.fromiter(chain.from_iterable(lists), np.int32, int(recorded.length_P.sum()))
    by_span = [ids[own] for own in slices(np.cumsum(recorded.length_P))]
    return np.concatenate([ids[:0], *map(by_span.__getitem__, span_Q.tolist())])
