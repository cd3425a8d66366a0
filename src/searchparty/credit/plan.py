"""A credit plan: per role what it learns from, and how the roles' tokens are weighed against each other.

The part of a recipe that decides credit. Knows names and numbers; `assign` carries it out.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from searchparty.credit.estimators.distillation import Distillation
from searchparty.credit.estimators.fixed import Constant, Unsupervised
from searchparty.credit.estimators.gae import GeneralisedAdvantage
from searchparty.credit.estimators.group_relative import GroupRelative
from searchparty.credit.planner_rewards import PlannerCosts
from searchparty.credit.reductions import ReductionName, ReductionScope
from searchparty.credit.reward_mix import RewardMix
from searchparty.credit.strict import StrictModel


def _estimator_from_text(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


EstimatorChoice = Annotated[
    Annotated[GroupRelative | Distillation | GeneralisedAdvantage | Constant | Unsupervised, Field(discriminator="name")],
    BeforeValidator(_estimator_from_text),
]


class RoleCredit(StrictModel):
    """What one role learns from."""

    estimator: EstimatorChoice
    """`group-relative`, `distillation`, `gae`, `constant` or `none`; a name, or a mapping with its settings."""
    rewards: RewardMix = RewardMix()
    """For estimators that need a reward. Others refuse it, except `none`, which only shows it."""
    frozen: bool = False
    """Hand out no signals for this role, whatever its estimator."""

    @model_validator(mode="after")
    def _rewards_fit_the_estimator(self) -> RoleCredit:
        """Refuse a reward that would be ignored, and an estimator that would have nothing to work on."""
        estimator = self.estimator
        if estimator.needs_reward and not self.rewards.weights:
            raise ValueError(f"{estimator.name} needs a reward; give a weight to at least one part under rewards")
        if estimator.learns and not estimator.needs_reward and self.rewards != RewardMix():
            raise ValueError(f"{estimator.name} reads no reward; remove rewards or choose another estimator")
        return self

    @property
    def learns(self) -> bool:
        """Whether the role's tokens are handed to the learner."""
        return self.estimator.learns and not self.frozen

    @property
    def needs_teacher(self) -> bool:
        """Whether a teacher must score the role's sequences."""
        return self.learns and (self.estimator.needs_teacher or self.rewards.teacher_kl > 0)

    @property
    def needs_reference(self) -> bool:
        """Whether a reference must score the role's sequences."""
        return self.learns and self.rewards.reference_kl > 0

    @property
    def needs_values(self) -> bool:
        """Whether a critic must value the role's tokens."""
        return self.learns and self.estimator.needs_values


class CreditPlan(StrictModel):
    """What every role of a team learns from."""

    roles: Annotated[dict[str, RoleCredit], Field(min_length=1)]
    """Every role of the team, trained or not."""
    reduction: ReductionName = "episode-mean"
    """`token-mean`, `sequence-mean` or `episode-mean`: who has a vote of equal size."""
    over: ReductionScope = "all"
    """`all`: the roles share one objective whose weights sum to 1. `role`: each role's weights sum to 1."""
    searching_role: str = "searcher"
    """The role whose searches the assignment term counts."""
    planner_costs: PlannerCosts = PlannerCosts()
    """How the reward part `planner_cost` is computed."""

    @model_validator(mode="after")
    def _something_learns(self) -> CreditPlan:
        """Refuse a plan that trains nothing, or counts the searches of a role that it does not know."""
        if not any(role.learns for role in self.roles.values()):
            raise ValueError("no role learns; give at least one an estimator other than none and do not freeze it")
        counts_searches = any(role.rewards.assignment for role in self.roles.values())
        if counts_searches and self.searching_role not in self.roles:
            raise ValueError(f"searching_role is {self.searching_role}; the plan's roles are {', '.join(self.roles)}")
        return self

    @property
    def needs_teacher(self) -> bool:
        """Whether any role's sequences must be scored by a teacher."""
        return any(role.needs_teacher for role in self.roles.values())

    @property
    def needs_reference(self) -> bool:
        """Whether any role's sequences must be scored by a reference."""
        return any(role.needs_reference for role in self.roles.values())

    @property
    def needs_values(self) -> bool:
        """Whether any role learns with a critic."""
        return any(role.needs_values for role in self.roles.values())
