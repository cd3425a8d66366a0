"""What is asked about a batch of episodes before credit is assigned: teacher, reference, judge, and the policy's own critic.

Knows whom the plan needs and what each of them is handed; nothing of what credit makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from searchparty.credit.evidence import Evidence
from searchparty.credit.findings import Finding
from searchparty.credit.gathering import sequences_to_score
from searchparty.credit.plan import CreditPlan
from searchparty.credit.types import FloatArray, SequenceKey
from searchparty.episodes.types import Episode
from searchparty.evaluation.scoring import ScoredEpisode
from searchparty.learning.faults import NonFinite
from searchparty.learning.learner import Learner
from searchparty.training.judge import Judge, Judgement
from searchparty.training.records import Scored
from searchparty.training.teacher import Teacher


@dataclass(frozen=True)
class Testimony:
    """What they said."""

    teacher: Mapping[SequenceKey, Scored] = field(default_factory=dict)
    reference: Mapping[SequenceKey, Scored] = field(default_factory=dict)
    values: Mapping[SequenceKey, FloatArray] = field(default_factory=dict)
    """The critic's, before the update."""
    judgement: Judgement = field(default_factory=lambda: Judgement({}, []))
    has_judge: bool = False
    failures: Sequence[str] = ()
    """A line for each sequence that teacher or reference could not score, and for each report that the judge could not."""

    @property
    def scores(self) -> dict[str, dict[SequenceKey, float]]:
        """Rewards from outside, by the name under which a plan weighs them."""
        return {"judge": self.judgement.scores} if self.has_judge else {}

    def findings(self) -> list[Finding]:
        """What is suspicious about what they said."""
        return self.judgement.findings()

    def evidence(self, scored: Sequence[ScoredEpisode]) -> Evidence:
        """All that credit needs besides the episodes."""
        return Evidence(
            candidates={one.key: one.candidates for one in scored},
            teacher_logprobs={key: one.logprobs_T for key, one in self.teacher.items()},
            reference_logprobs={key: one.logprobs_T for key, one in self.reference.items()},
            values=self.values,
            scores=self.scores,
        )


@dataclass
class Witnesses:
    """Open until `close`. The learner is the policy's and stays open."""

    learner: Learner
    teacher: Teacher | None = None
    reference: Teacher | None = None
    judge: Judge | None = None

    @property
    def are_slow(self) -> bool:
        """Whether a model besides the policy must read the episodes, so that somebody who watches should be told."""
        return self.teacher is not None or self.reference is not None

    async def testify(self, episodes: Sequence[Episode], plan: CreditPlan, seed: int) -> Testimony:
        """Ask each of them about what the plan wants to know.

        Raises:
            ValueError: teacher or reference answered with another number of tokens than it was given.
            NonFinite: the critic's values are no longer numbers, so nothing can be learned from them.
        """
        teacher, reference = dict[SequenceKey, Scored](), dict[SequenceKey, Scored]()
        failures: list[str] = []
        if self.teacher is not None:
            teacher, unscored = await self.teacher.score(sequences_to_score(episodes, plan, lambda role: role.needs_teacher))
            failures += unscored
        if self.reference is not None:
            reference, unscored = await self.reference.score(
                sequences_to_score(episodes, plan, lambda role: role.needs_reference)
            )
            failures += [f"reference: {line}" for line in unscored]
        judgement = Judgement({}, []) if self.judge is None else await self.judge.score(episodes, seed)
        return Testimony(
            teacher,
            reference,
            self._values(episodes, plan),
            judgement,
            self.judge is not None,
            [*failures, *judgement.failures],
        )

    def _values(self, episodes: Sequence[Episode], plan: CreditPlan) -> dict[SequenceKey, FloatArray]:
        """The critic's values of every sequence that has something to train."""
        if not plan.needs_values:
            return {}
        sequences = [one for one in sequences_to_score(episodes, plan, lambda role: role.needs_values) if one.trainable_T.any()]
        values = dict(zip([one.key for one in sequences], self.learner.values(sequences), strict=True))
        if broken := [key for key, values_T in values.items() if not np.isfinite(values_T).all()]:
            raise NonFinite("value", broken)
        return values

    async def close(self) -> None:
        """Free teacher, reference and judge."""
        for teacher in (self.teacher, self.reference):
            if teacher is not None:
                await teacher.close()
        if self.judge is not None:
            await self.judge.close()
