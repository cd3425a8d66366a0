"""What is suspicious about one batch of credit. Silence is an alarm (contract 9).

Findings are data: whether one is printed or stops the run is decided where the run is driven.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from searchparty.credit.types import SequenceKey


class FindingKind(StrEnum):
    """What was found. The list is closed."""

    NO_TRAINABLE_TOKENS = "no_trainable_tokens"
    """A role that is to learn has not one trainable token."""
    NOTHING_SCORED = "nothing_scored"
    """A role needs a teacher, and the teacher scored none of its tokens; or a judge, and no report got a usable score."""
    PARTLY_SCORED = "partly_scored"
    """The teacher scored some of a role's sequences and not others, which learn nothing from it; or a judge some reports and
    not others, which count as 0."""
    NON_FINITE = "non_finite"
    """A log-probability or a value at a trainable token is infinite or not a number. One finding per sequence."""
    ALTERED_SAMPLING = "altered_sampling"
    """Tokens were drawn by temperature, top-p or top-k from another distribution than the model's own, so that recorded
    log-probabilities and a teacher's at temperature 1 do not compare."""
    ONLY_SINGLETONS = "only_singletons"
    """Every comparison of a role has a single member, so it learns nothing: most often the wrong thing is compared."""
    NO_ADVANTAGE = "no_advantage"
    """Every advantage of a role is 0, for another reason than those above."""
    EPISODES_SET_ASIDE = "episodes_set_aside"
    """Episodes ended by a failed service or by a fault in the team's code, which says nothing about what the policy did."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One suspicion, with where to look."""

    kind: FindingKind
    role: str | None
    """None if it concerns no single role."""
    detail: str
    """One line for a person."""
    key: SequenceKey | None = None
    """The sequence in question; None if it concerns a whole role."""

    def __str__(self) -> str:
        place = "" if self.key is None else f"{self.key.question_key}, sample {self.key.sample}, {self.key.agent}: "
        role = "" if self.role is None else f"{self.role}: "
        return f"{self.kind}: {role}{place}{self.detail}"
