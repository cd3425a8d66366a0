"""From an episode to the token sequences that can be learned from, each by itself.

Knows spans and nothing of rewards. Axis suffix `_T`: tokens of one sequence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from searchparty.credit.joining import join
from searchparty.credit.recorded import Part
from searchparty.credit.types import BoolArray, FloatArray, IntArray, SequenceKey
from searchparty.episodes.types import Episode, Span, SpanKind, Transcript


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


def sequences_of(parts: Iterable[Part], *, logprobs_required: bool = True) -> list[TokenSequence]:
    """One sequence per candidate of each agent's last turn, in their order. None for an agent that never acted.

    Only the last turn may have several candidates. Earlier turns belong to the sequences of all of them and are trained once,
    in that of the first candidate; in the others they are context like a prompt. What the agent observed after its last turn is
    left out, because nothing was sampled after it.

    The arrays of a sequence are its cut of arrays that hold all sequences one after another, and share no entry with another
    sequence's.

    Args:
        parts: agents, each with its episode.
        logprobs_required: False if log-probabilities are computed anew before credit is assigned; those recorded are then
            neither needed nor read.

    Raises:
        UserError: an agent's history is not token-exact, or a sampled span has no log-probabilities.
        ValueError: a record contradicts itself.
    """
    joined = join(list(parts), logprobs_required=logprobs_required)
    layout = joined.layout
    columns = layout.cut(joined.ids_M), layout.cut(layout.trainable_M), layout.place(joined.logprobs_N)
    return [
        TokenSequence(*head, ids_T, trainable_T, old_logprobs_T)
        for head, ids_T, trainable_T, old_logprobs_T in zip(joined.heads, *columns, strict=True)
    ]


def agent_sequences(episode: Episode, transcript: Transcript, *, logprobs_required: bool = True) -> list[TokenSequence]:
    """The sequences of one agent; see `sequences_of`."""
    return sequences_of([(episode, transcript)], logprobs_required=logprobs_required)


def token_sequences(episode: Episode, *, logprobs_required: bool = True) -> list[TokenSequence]:
    """The sequences of all agents, in their order; see `sequences_of`."""
    return sequences_of(((episode, transcript) for transcript in episode.agents), logprobs_required=logprobs_required)


def has_acted(transcript: Transcript) -> bool:
    """Whether anything was sampled for the agent."""
    return any(span.kind is SpanKind.ACTION for span in reversed(transcript.spans))


def last_turn_taken(transcript: Transcript) -> list[Span]:
    """The action spans of the last call that was answered, one per candidate; a failed call after it is passed over."""
    actions = [span for span in transcript.spans if span.kind is SpanKind.ACTION]
    last = actions[-1].call if actions else None
    return [span for span in actions if span.call == last]
