"""What every estimator is given and gives back.

An estimator is both the part of a recipe that sets it and the algorithm. It sees the sequences of one role and nothing else:
no text, no model, no other role.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from searchparty.credit.layout import Layout
from searchparty.credit.reward_mix import Reward
from searchparty.credit.sequences import TokenSequence
from searchparty.credit.strict import StrictModel
from searchparty.credit.types import FloatArray


@dataclass(slots=True)
class Sample:
    """One sequence of a role with all that may be known of it. Log-probabilities and values are finite at trainable tokens."""

    sequence: TokenSequence
    reward: Reward
    teacher_logprobs_T: FloatArray | None = None
    """None if the teacher did not score the sequence."""
    values_T: FloatArray | None = None
    """The critic's; None if there is no critic."""
    reference_penalty_T: FloatArray | None = None
    """What each token loses for its distance from the reference; sums to the reward's `reference_penalty`. None without one."""

    @property
    def tokens(self) -> int:
        """Number of trainable tokens."""
        return len(self.sequence.trained)


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How many comparisons there were, and how many of them could teach nothing."""

    groups: int
    singletons: int
    """Groups with one member."""
    equal: int
    """Groups with several members that all earned the same."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Per sample, in the order given; arrays are [T] and 0 where `trainable_T` is False."""

    advantages: Sequence[FloatArray]
    returns: Sequence[FloatArray] | None = None
    """Targets of the critic; None for estimators without one."""
    groups: GroupCounts | None = None
    """None for estimators that compare nothing."""


def layout_of(samples: Sequence[Sample]) -> Layout:
    """How the samples' sequences lie side by side."""
    return Layout([sample.sequence for sample in samples])


class Estimator(StrictModel):
    """Base of the estimators. The class variables say what a plan must provide."""

    learns: ClassVar[bool] = True
    """Whether a role with this estimator is trained at all."""
    needs_reward: ClassVar[bool] = False
    needs_teacher: ClassVar[bool] = False
    needs_values: ClassVar[bool] = False

    @abstractmethod
    def estimate(self, samples: Sequence[Sample]) -> Estimates:
        """Advantages of all samples of one role. Does not depend on their order."""
