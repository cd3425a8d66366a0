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
    """Every part that the mix asks for, by name and unweighted; `well_formed` is 1.0 or 0.0. `teacher_divergence` is absent
    if the teacher did not score the sequence."""
    outcome: float
    """The weighted sum of the parts, or the reward of an invalid format; without the KL penalty."""
    penalty: float
    """Coefficient times divergence from the teacher."""

    @property
    def total(self) -> float:
        """Outcome less penalty."""
        return self.outcome - self.penalty


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
    given: dict[str, float] = Field(default_factory=dict)
    """Weights of scores that are computed outside, by name: `judge` for an LLM's score of a report."""
    invalid_format: float | None = -1.0
    """What replaces the weighted sum if the turn holds no well-formed action; None lets the sum stand."""
    teacher_kl: float = Field(default=0.0, ge=0)
    """Coefficient of the divergence from the teacher, which is subtracted, from an invalid turn's reward as well."""

    @model_validator(mode="after")
    def _given_names_are_free(self) -> RewardMix:
        """Refuse a score from outside under the name of something that is computed here."""
        taken = (*type(self).model_fields, "well_formed", "teacher_divergence", "outcome", "penalty", "total")
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
        }
        return {part: weight for part, weight in (own | self.given).items() if weight}

    def mix(self, value_of: Callable[[str], float], *, well_formed: bool, divergence: float | None) -> Reward:
        """Weigh the parts.

        Args:
            value_of: gives the value of a part by its name; asked only for parts that have a weight.
            divergence: of the sequence from the teacher; None if it was not scored, which costs nothing.
        """
        shown, outcome = {}, 0.0
        for part, weight in self.weights.items():
            shown[part] = value_of(part)
            outcome += weight * shown[part]
        if not well_formed and self.invalid_format is not None:
            outcome = self.invalid_format
        shown["well_formed"] = float(well_formed)
        if divergence is None:
            return Reward(shown, outcome, 0.0)
        shown["teacher_divergence"] = divergence
        return Reward(shown, outcome, self.teacher_kl * divergence)
