"""How the named parts of a reward are weighed into one number, and kept apart beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field, model_validator

from searchparty.credit.strict import StrictModel


@dataclass(slots=True)
class Reward:
    """What one sequence earned."""

    parts: Mapping[str, float]
    """Every part that the mix asks for, by name and unweighted; `well_formed` is 1.0 or 0.0. `teacher_divergence` and
    `reference_divergence` are absent if teacher or reference did not score the sequence."""
    outcome: float
    """The weighted sum of the parts, or the reward of an invalid format; without the KL penalties."""
    penalty: float
    """Coefficient times divergence from the teacher."""
    reference_penalty: float = 0.0
    """Coefficient times divergence from the reference, summed over the sequence's tokens."""

    @property
    def total(self) -> float:
        """Outcome less both penalties."""
        return self.outcome - self.penalty - self.reference_penalty


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
        value_of: Callable[[str], float],
        *,
        well_formed: bool,
        divergence: float | None,
        reference_divergence: float | None = None,
    ) -> Reward:
        """Weigh the parts.

        Args:
            value_of: gives the value of a part by its name; asked only for parts that have a weight.
            divergence: of the sequence from the teacher; None if it was not scored, which costs nothing.
            reference_divergence: likewise from the reference.
        """
        shown, outcome = {}, 0.0
        for part, weight in self.weights.items():
            shown[part] = value_of(part)
            outcome += weight * shown[part]
        if not well_formed and self.invalid_format is not None:
            outcome = self.invalid_format
        shown["well_formed"] = float(well_formed)
        if divergence is not None:
            shown["teacher_divergence"] = divergence
        if reference_divergence is not None:
            shown["reference_divergence"] = reference_divergence
        return Reward(shown, outcome, self.teacher_kl * (divergence or 0.0), self.reference_kl * (reference_divergence or 0.0))
