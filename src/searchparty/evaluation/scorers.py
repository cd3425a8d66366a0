"""The scores of one answer, as every run uses them: an official script, behind a guard against points for saying nothing.

Normalisation turns some golden answers into the empty string (the band `The The`, a lone `)`), and an official script then
calls an empty prediction right, and every prediction one that covers the answer. The guard leaves such golden answers out. A
question that has no other is *unscorable*: it scores 0, stays in the denominator, and `AnswerScore.scorable` is False so that
it can be counted and shown. Wherever all golden answers are usable the scores equal the official ones.

Knows one prediction and its golden answers; nothing of runs, samples or how the answer was extracted.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from searchparty.errors import UserError
from searchparty.evaluation.loose import loosened
from searchparty.evaluation.official_scripts import OFFICIAL_SCRIPTS, OfficialScript, require_list


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """What one prediction earned on one question; each value is between 0 and 1."""

    exact_match: float
    f1: float
    cover_exact_match: float
    """Not a right answer but one that contains it: see `Scorer.cover_exact_match`."""
    scorable: bool
    """False if no golden answer is usable; the scores are then 0 whatever was predicted."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """Guarded scores after one official script. A prediction of None (no answer was given) scores 0 everywhere."""

    script: OfficialScript

    @property
    def name(self) -> str:
        return self.script.name

    def exact_match(self, prediction: str | None, golden_answers: Sequence[str]) -> float:
        """1.0 if the prediction equals a usable golden answer after normalisation, else 0.0."""
        usable = self._usable(golden_answers)
        return self.script.exact_match(prediction, usable) if prediction is not None and usable else 0.0

    def f1(self, prediction: str | None, golden_answers: Sequence[str]) -> float:
        """The largest token F1 over the usable golden answers."""
        usable = self._usable(golden_answers)
        return self.script.f1(prediction, usable) if prediction is not None and usable else 0.0

    def cover_exact_match(self, prediction: str | None, golden_answers: Sequence[str]) -> float:
        """1.0 if the normalised prediction contains a normalised usable golden answer as a substring, else 0.0.

        For comparison with work that reports it; it rewards hedging (`Paris or London`) and hits inside words (`no` in
        `nobody`).
        """
        if prediction is None:
            return 0.0
        normalised = self.script.normalise(prediction)
        return float(any(self.script.normalise(golden) in normalised for golden in self._usable(golden_answers)))

    def loose_exact_match(self, prediction: str | None, golden_answers: Sequence[str]) -> float:
        """As `exact_match`, where Unicode forms, dashes, quotation marks, accents and case do not count; see `loose`.

        At least `exact_match`, and never the score.
        """
        if prediction is None:
            return 0.0
        loose = loosened(self.script.normalise, prediction)
        golden = (loosened(self.script.normalise, golden) for golden in self._usable(golden_answers))
        return max(self.exact_match(prediction, golden_answers), float(bool(loose) and loose in golden))

    def f1_joined(self, prediction: str | None, golden_answers: Sequence[str]) -> float:
        """Token F1 against all golden answers joined by `, ` into one text, so that only naming every alias earns 1.

        For comparison with work whose data stores the answers in this form, the public MAO-ARAG code among it; `f1` is the
        score.
        """
        joined = ", ".join(require_list(golden_answers))
        return self.f1(prediction, [joined])

    def score(self, prediction: str | None, golden_answers: Sequence[str]) -> AnswerScore:
        """All scores of one prediction."""
        return AnswerScore(
            exact_match=self.exact_match(prediction, golden_answers),
            f1=self.f1(prediction, golden_answers),
            cover_exact_match=self.cover_exact_match(prediction, golden_answers),
            scorable=self.is_scorable(golden_answers),
        )

    def is_scorable(self, golden_answers: Sequence[str]) -> bool:
        """Whether any golden answer is usable."""
        return bool(self._usable(golden_answers))

    def _usable(self, golden_answers: Sequence[str]) -> list[str]:
        return [golden for golden in require_list(golden_answers) if self.script.normalise(golden)]


def unusable_golds(golden_answers: Sequence[str], scorer: Scorer) -> tuple[str, ...]:
    """The golden answers of which the scorer's normaliser leaves nothing, in their order; the scorer skips them."""
    return tuple(golden for golden in require_list(golden_answers) if not scorer.script.normalise(golden))


SCORERS: Mapping[str, Scorer] = MappingProxyType({name: Scorer(script) for name, script in OFFICIAL_SCRIPTS.items()})


def scorer_named(name: str) -> Scorer:
    """The scorer of this name. UserError with the nearest names if there is none."""
    if name in SCORERS:
        return SCORERS[name]
    nearest = difflib.get_close_matches(name.lower(), SCORERS, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(nearest)}? " if nearest else ""
    raise UserError(f"no scorer is named {name!r}; {hint}Choose one of: {', '.join(SCORERS)}")
