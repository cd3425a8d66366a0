"""The spans of many agents as columns: what each span is, and which of them are an agent's last turn.

Knows spans and what must be true of them; nothing of sequences. Axis suffixes: `_A` agents that acted, `_P` their spans up
to and with the last action, one agent after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchparty.credit.types import BoolArray
from searchparty.episodes.types import Episode, Span, SpanKind, Transcript
from searchparty.errors import UserError

Part = tuple[Episode, Transcript]
"""An agent, with its episode."""


class RecordedSpans:
    """Some agents' histories. What was observed after the last action is left out, and so is an agent that never acted."""

    def __init__(self, parts: Sequence[Part]) -> None:
        histories = [_to_the_last_action(transcript) for _, transcript in parts]
        self.parts = [part for part, history in zip(parts, histories, strict=True) if history]
        self.part_A = np.flatnonzero([bool(history) for history in histories])
        """Which of the given agents it is."""
        self.spans = list(chain.from_iterable(histories))
        count_A = np.array([len(history) for history in histories if history], np.intp)
        self.agent_P = np.repeat(np.arange(len(count_A)), count_A)
        self.end_A = np.cumsum(count_A)
        """The span after its last."""
        self.start_A = self.end_A - count_A
        self.length_P = self._column(np.intp, (-1 if span.ids is None else len(span.ids) for span in self.spans))
        """Its tokens; -1 if it is not token-exact."""
        self.sampled_P = self._column(np.bool_, (span.kind is SpanKind.ACTION for span in self.spans))
        self.call_P = self._column(np.intp, (-1 if span.call is None else span.call for span in self.spans))
        self.turn_P = self.sampled_P & (self.call_P == self.call_P[self.end_A - 1][self.agent_P])
        """Whether it is one of the candidates of the last turn."""
        self.first_A = self.end_A - np.bincount(self.agent_P[self.turn_P], minlength=len(count_A))
        """The first candidate of the last turn, if its candidates stand side by side."""
        self.candidate_P = np.arange(len(self.spans)) - self.first_A[self.agent_P]
        """Which of them it is; negative in the history before them."""

    def _column(self, kind: Any, values: Iterable[Any]) -> NDArray[Any]:
        return np.fromiter(values, kind, len(self.spans))

    def check(self, *, logprobs_required: bool) -> None:
        """Raises as `sequences_of` does, about the first span in question."""
        said_P = self._column(np.intp, (-1 if span.candidate is None else span.candidate for span in self.spans))
        in_turn_P = self.candidate_P >= 0
        self._refuse(self.turn_P & (self.call_P < 0), ValueError, lambda span: "a sampled span names no call")
        self._refuse(
            (in_turn_P != self.turn_P) | (in_turn_P & (said_P != self.candidate_P)),
            ValueError,
            lambda span: "the candidates of its last call do not stand side by side from 0 on",
        )
        self._refuse(
            self.sampled_P & ~in_turn_P & (said_P > 0),
            ValueError,
            lambda span: "a call that is not the last has several candidates",
        )
        self._refuse(
            self.length_P < 0,
            UserError,
            lambda span: (
                "is not token-exact, so nothing can be trained on it; play the role with a model that exchanges token ids"
            ),
        )
        if not logprobs_required:
            return
        logprobs_P = self._column(np.intp, (-1 if span.logprobs is None else len(span.logprobs) for span in self.spans))
        self._refuse(
            self.sampled_P & (logprobs_P < 0),
            UserError,
            lambda span: (
                f"call {span.call} was recorded without log-probabilities; sample with an engine that returns them, or have "
                "the learner compute them before credit is assigned"
            ),
        )
        self._refuse(
            self.sampled_P & (logprobs_P != self.length_P),
            ValueError,
            lambda span: f"call {span.call} has {len(span.logprobs or ())} log-probabilities for {len(span.ids or ())} tokens",
        )

    def _refuse(self, wrong_P: BoolArray, error: type[Exception], what: Callable[[Span], str]) -> None:
        if wrong_P.any():
            at = int(wrong_P.argmax())
            episode, transcript = self.parts[self.agent_P[at]]
            raise error(f"{episode.question_key}, sample {episode.sample}, {transcript.agent}: {what(self.spans[at])}")


def _to_the_last_action(transcript: Transcript) -> Sequence[Span]:
    """Empty if the agent never acted."""
    spans = transcript.spans
    for number in range(len(spans), 0, -1):
        if spans[number - 1].kind is SpanKind.ACTION:
            return spans[:number]
    return []
