"""How the named parts of a reward are weighed into one number, and kept apart beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from searchparty.credit.strict import StrictModel
from searchparty.credit.types import BoolArray

RewardArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rewards:
    """What the sequences of one role earned [S]."""

    parts: Mapping[str, RewardArray]
    """Every part that the mix asks for, by name and unweighted; `well_formed` is 1.0 or 0.0. `teacher_divergence` and
    `reference_divergence` are not a number where teacher or reference did not score the sequence, and absent if the role
    needs none."""
    outcome_S: RewardArray
    """The weighted sum of the parts, or the reward of an invalid format; without the KL penalties."""
    penalty_S: RewardArray
    """Coefficient times divergence from the teacher."""
    reference_penalty_S: RewardArray
    """Coefficient times divergence from the reference, summed over the sequence's tokens."""

    @property
    def total_S(self) -> RewardArray:  # noqa: N802
        """Outcome less both penalties."""
        return self.outcome_S - self.penalty_S - self.reference_penalty_S

    def only(self, kept_S: BoolArray) -> Rewards:
        """Those of some of the sequences."""
        return Rewards(
            {part: values_S[kept_S] for part, values_S in self.parts.items()},
            self.outcome_S[kept_S],
            self.penalty_S[kept_S],
            self.reference_penalty_S[kept_S],
        )

    def means(self) -> dict[str, float]:
        """Of each part over the sequences that have it, and of what they come to. Empty without a sequence."""
        columns = {**self.parts, "outcome": self.outcome_S, "penalty": self.penalty_S}
        if "reference_divergence" in self.parts:
            referred_S = ~np.isnan(self.parts["reference_divergence"])
            columns["reference_penalty"] = self.reference_penalty_S[referred_S]
        columns["total"] = self.total_S
        had = {part: values_S[~np.isnan(values_S)].tolist() for part, values_S in columns.items()}
        return {part: sum(values) / len(values) for part, values in had.items() if values}


_SHOWN = ("well_formed", "teacher_divergence", "reference_divergence", "outcome", "penalty", "reference_penalty", "total")


class RewardMix(StrictModel):
    """A role's reward: a weight per part. Parts of weight 0 are not computed. See `rewards` for what each part is."""

    exact_match: float = 0.0
    """The candidate's own answer is right. Only for the agent that answers; others earn 0."""
    team_result: float = 0.0
    """At least one candidate of the episode is right."""
    behaviour: float = 0.0
    """The Searcher searched before it reported."""
    assignment: float = 0.0
    """Share of the capped number of environment steps in which Searchers searched."""
    f1: float = 0.0
    """F1 of the episode's answer, the same for every agent of the episode; the answering agent's candidates earn their own."""
    planner_cost: float = Field(default=0.0, ge=0)
    """α: what the cost CP of the planned workflow is multiplied with before it is subtracted. Only for planners."""
    invalid_workflow: float = Field(default=0.0, ge=0)
    """Subtracted if the planned workflow breaks a rule of the grammar (FP). Only for planners."""
    given: dict[str, float] = Field(default_factory=dict)
    """Weights of scores that are computed outside, by name: `judge` for an LLM's score of a report."""
    invalid_format: float | None = -1.0
    """What replaces the weighted sum if the turn holds no well-formed action; None lets the sum stand."""
    teacher_kl: float = Field(default=0.0, ge=0)
    """Coefficient of the divergence from the teacher, which is subtracted, from an invalid turn's reward as well."""
    reference_kl: float = Field(default=0.0, ge=0)
    """Coefficient β of `log π_old − log π_ref`, subtracted at every token by estimators that know rewards of tokens (`gae`),
    and as its sum by the others."""

    @model_validator(mode="after")
    def _given_names_are_free(self) -> RewardMix:
        """Refuse a score from outside under the name of something that is computed here."""
        taken = (*type(self).model_fields, *_SHOWN)
        if clash := [name for name in self.given if name in taken]:
            raise ValueError(f"given: {', '.join(clash)} is computed from the episode; choose another name")
        return self

    @cached_property
    def weights(self) -> dict[str, float]:
        """Part to weight, for the parts that count, the KL penalty aside."""
        own = {
            "exact_match": self.exact_match,
            "team_result": self.team_result,
            "behaviour": self.behaviour,
            "assignment": self.assignment,
            "f1": self.f1,
            "planner_cost": -self.planner_cost,
            "invalid_workflow": -self.invalid_workflow,
        }
        return {part: weight for part, weight in (own | self.given).items() if weight}

    def mix(
        self,
        values_of: Callable[[str], Sequence[float]],
        *,
        well_formed: Sequence[bool],
        divergence_S: RewardArray | None = None,
        reference_divergence_S: RewardArray | None = None,
    ) -> Rewards:
        """Weigh the parts of a role's sequences.

        Args:
            values_of: gives a part of every sequence by its name; asked only for parts that have a weight.
            well_formed: whether each sequence's turn holds a well-formed action.
            divergence_S: of each sequence from the teacher; not a number if it was not scored, which costs nothing. None if
                no teacher was asked.
            reference_divergence_S: likewise from the reference.
        """
        parts = {part: np.array(values_of(part), np.float64) for part in self.weights}
        well_formed_S = np.array(well_formed, np.bool_)
        outcome_S = np.zeros(len(well_formed_S))
        for part, weight in self.weights.items():
            outcome_S += weight * parts[part]
        if self.invalid_format is not None:
            outcome_S[~well_formed_S] = self.invalid_format
        parts["well_formed"] = well_formed_S.astype(np.float64)
        if divergence_S is not None:
            parts["teacher_divergence"] = divergence_S
        if reference_divergence_S is not None:
            parts["reference_divergence"] = reference_divergence_S
        nothing_S = np.zeros_like(outcome_S)
        return Rewards(
            parts,
            outcome_S,
            nothing_S if divergence_S is None else self.teacher_kl * np.nan_to_num(divergence_S),
            nothing_S if reference_divergence_S is None else self.reference_kl * np.nan_to_num(reference_divergence_S),
        )
