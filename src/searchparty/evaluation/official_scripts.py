"""Exact match and F1 exactly as the datasets' own evaluation scripts compute them, their faults included.

These functions exist to be compared with published numbers. They give an empty prediction a full point where the golden answer
is empty after normalisation, so a run is scored with `scorers`, which wraps them, and never with them directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from searchparty.evaluation.normalise import normalise_answer, normalise_triviaqa

_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


@dataclass(frozen=True, slots=True)
class OfficialScript:
    """One evaluation script, given by its normaliser and by its F1 of two texts that are already normalised."""

    name: str
    normalise: Callable[[str], str]
    normalised_f1: Callable[[str, str], float]
    """`(normalised prediction, normalised golden answer) -> F1`, between 0 and 1."""

    def exact_match(self, prediction: str, golden_answers: Sequence[str]) -> float:
        """1.0 if the prediction equals any golden answer after normalisation, else 0.0. ValueError without golden answers."""
        normalised = self.normalise(prediction)
        return max(float(normalised == self.normalise(golden)) for golden in require_list(golden_answers))

    def f1(self, prediction: str, golden_answers: Sequence[str]) -> float:
        """The largest token F1 over the golden answers, between 0 and 1. ValueError without golden answers."""
        normalised = self.normalise(prediction)
        return max(self.normalised_f1(normalised, self.normalise(golden)) for golden in require_list(golden_answers))


def require_list(golden_answers: Sequence[str]) -> Sequence[str]:
    """Return the argument. TypeError for a single string, whose letters would otherwise each be taken for an answer."""
    if isinstance(golden_answers, str):
        raise TypeError(f"golden answers must be a list of strings, got the single string {golden_answers!r}")
    return golden_answers


def token_f1(prediction: str, golden: str) -> float:
    """Harmonic mean of precision and recall over white-space tokens, each counted as often as it occurs in both texts.

    0 if no token is shared, hence also for two empty texts. Source: SQuAD v1.1 and TriviaQA.
    """
    prediction_tokens, golden_tokens = prediction.split(), golden.split()
    if set(prediction_tokens).isdisjoint(golden_tokens):
        return 0.0
    shared = (Counter(prediction_tokens) & Counter(golden_tokens)).total()
    precision = shared / len(prediction_tokens)
    recall = shared / len(golden_tokens)
    return 2 * precision * recall / (precision + recall)


def token_f1_closed_answers(prediction: str, golden: str) -> float:
    """`token_f1`, but 0 where either text is `yes`, `no` or `noanswer` and the other is not the same.

    So `Yes, they are` earns nothing against `yes`. Source: HotpotQA, taken over by 2WikiMultiHopQA.
    """
    if prediction != golden and (prediction in _CLOSED_ANSWERS or golden in _CLOSED_ANSWERS):
        return 0.0
    return token_f1(prediction, golden)


def token_f1_both_empty(prediction: str, golden: str) -> float:
    """`token_f1`, but 1 where both texts are empty. Source: MuSiQue, after SQuAD 2.0's unanswerable questions."""
    if not prediction and not golden:
        return 1.0
    return token_f1(prediction, golden)


OFFICIAL_SCRIPTS: Mapping[str, OfficialScript] = MappingProxyType(
    {
        script.name: script
        for script in (
            OfficialScript("squad", normalise_answer, token_f1),
            OfficialScript("hotpotqa", normalise_answer, token_f1_closed_answers),
            OfficialScript("2wiki", normalise_answer, token_f1_closed_answers),
            OfficialScript("musique", normalise_answer, token_f1_both_empty),
            OfficialScript("triviaqa", normalise_triviaqa, token_f1),
        )
    }
)
"""SQuAD v1.1, HotpotQA v1, 2WikiMultiHopQA v1.1, MuSiQue v1.0 and TriviaQA v1.0.

HotpotQA's script knows one golden answer per question; here, as in the others, the best over several counts.
"""
