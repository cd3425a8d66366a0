"""What every estimator is given and gives back.

An estimator is both the part of a recipe that sets it and the algorithm. It sees the sequences of one role and nothing else:
no text, no model, no other role.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from searchparty.credit.joining import JoinedSequences
from searchparty.credit.layout import Layout
from searchparty.credit.reward_mix import Rewards
from searchparty.credit.strict import StrictModel
from searchparty.credit.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class Heard:
    """What a model said of a role's tokens."""

    said_N: FloatArray
    """Finite; 0 in sequences of which it said nothing that can be used."""
    known_S: BoolArray
    """Of which sequences it did."""
    broken_S: BoolArray
    """Of which sequences it said something that is no finite number at a trainable token."""

    def only(self, kept_S: BoolArray, kept_N: BoolArray) -> Heard:
        """What it said of some of the sequences."""
        return Heard(self.said_N[kept_N], self.known_S[kept_S], self.broken_S[kept_S])


@dataclass(frozen=True, slots=True)
class Samples:
    """The sequences of one role with all that may be known of them. Axis suffixes as in `layout`: `_S` sequences, `_N` their
    trainable tokens, sequence after sequence."""

    sequences: JoinedSequences
    rewards: Rewards
    old_logprobs_N: FloatArray
    """Log-probability under the sampling policy; finite."""
    teacher: Heard | None = None
    """Log-probability under the teacher; None for a role that needs none."""
    critic: Heard | None = None
    """The critic's values; None for a role that needs none."""
    reference_penalty_N: FloatArray | None = None
    """What each token loses for its distance from the reference; sums to the reward's `reference_penalty`. None without one."""

    @property
    def layout(self) -> Layout:
        """How the sequences lie side by side."""
        return self.sequences.layout

    def only(self, kept_S: BoolArray) -> Samples:
        """Some of the sequences."""
        if kept_S.all():
            return self
        kept_N = np.repeat(kept_S, self.layout.tokens_S)
        return Samples(
            self.sequences.only(kept_S),
            self.rewards.only(kept_S),
            self.old_logprobs_N[kept_N],
            None if self.teacher is None else self.teacher.only(kept_S, kept_N),
            None if self.critic is None else self.critic.only(kept_S, kept_N),
            None if self.reference_penalty_N is None else self.reference_penalty_N[kept_N],
        )


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
    """What is said about trainable tokens [N]; about others nothing can be said."""

    advantages_N: NDArray[np.floating]
    returns_N: NDArray[np.floating] | None = None
    """Targets of the critic; None for estimators without one."""
    groups: GroupCounts | None = None
    """None for estimators that compare nothing."""


class Estimator(StrictModel):
    """Base of the estimators. The class variables say what a plan must provide."""

    learns: ClassVar[bool] = True
    """Whether a role with this estimator is trained at all."""
    needs_reward: ClassVar[bool] = False
    needs_teacher: ClassVar[bool] = False
    needs_values: ClassVar[bool] = False

    @abstractmethod
    def estimate(self, samples: Samples) -> Estimates:
        """Advantages of one role's tokens. Does not depend on the order of the sequences."""
