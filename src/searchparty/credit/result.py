"""What credit gives back: signals for the learner, and counts and findings for whoever watches the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from searchparty.credit.estimators.base import GroupCounts
from searchparty.credit.findings import Finding
from searchparty.credit.types import Signal
from searchparty.episodes.types import StopReason


@dataclass(frozen=True, slots=True)
class RoleCounts:
    """What one role brought to the batch. Token counts are those of sequences that are handed to the learner."""

    episodes: int
    """Episodes in which it acted."""
    sequences: int
    """Agents times candidates of their last turns, all of them."""
    tokens: int
    """Trainable tokens; 0 for a role that does not learn."""
    scored_tokens: int
    """Of these, the ones that a teacher scored; 0 for a role that needs none."""
    moving_tokens: int
    """Of these, the ones whose advantage is not 0."""
    groups: GroupCounts | None
    """None for estimators that compare nothing."""
    rewards: Mapping[str, float]
    """Means over its sequences: every part unweighted, and `outcome`, `penalty`, `total`. Empty if it has no sequence."""


@dataclass(frozen=True, slots=True)
class CreditResult:
    """What the learner gets, and what a person should see of it."""

    signals: Sequence[Signal]
    """In the order of episodes, agents and candidates."""
    roles: Mapping[str, RoleCounts]
    """Every role of the plan, also one that never acted."""
    set_aside: Mapping[StopReason, int]
    """Episodes that nothing is learned from, by ending: failed services and faults in the team's code."""
    findings: Sequence[Finding]
    """Everything suspicious. An empty list is the all-clear."""
