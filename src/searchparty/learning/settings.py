"""Everything that can be set about a learner, and the learning rate's course."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Schedule:
    """Learning rate as a share of its peak: a linear warm-up, then constant, or down to `final_share` at `total_steps`.

    Steps are optimizer steps, one for each minibatch.
    """

    kind: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: int = 0
    total_steps: int | None = None
    """Needed for `linear` and `cosine`; later steps stay at `final_share`."""
    final_share: float = 0.0

    def __post_init__(self) -> None:
        if self.kind != "constant" and (self.total_steps is None or self.total_steps <= self.warmup_steps):
            raise ValueError(f"a {self.kind} schedule needs total_steps above warmup_steps ({self.warmup_steps})")

    def share(self, step: int) -> float:
        """The share at optimizer step `step`, from 0."""
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        if self.kind == "constant" or self.total_steps is None:
            return 1.0
        done = min(1.0, (step - self.warmup_steps) / (self.total_steps - self.warmup_steps))
        left = 1 - done if self.kind == "linear" else (1 + math.cos(math.pi * done)) / 2
        return self.final_share + (1 - self.final_share) * left


@dataclass(frozen=True)
class LearnerSettings:
    """How weights are changed; which tokens count how much is said by the signals."""

    learning_rate: float = 1e-6
    schedule: Schedule = field(default_factory=Schedule)
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    gradient_clip: float | None = 1.0
    """Largest norm of a minibatch's gradient, policy and critic apart; None does not clip."""
    minibatches: int = 5
    """Optimizer steps of one update; each sequence is in one of them."""
    tokens_per_pass: int = 16384
    """Most tokens of one forward pass: decides memory and speed, not the result."""
    temperatures: Mapping[str, float] = field(default_factory=dict)
    """Sampling temperature by role, 1 for roles not named. Truncation by top-p or top-k is not reproduced: where a sampler
    truncates, its log-probabilities differ from the learner's, and the mismatch shows it."""
    old_logprobs: Literal["sampler", "recomputed"] = "recomputed"
    """What the ratio is taken against: what the sampler recorded, or what the learner itself gives for the same tokens before
    the first minibatch. The second costs a forward pass and is exact where sampler and learner compute differently."""
    importance_cap: float | None = 2.0
    """With recomputed log-probabilities: each token's policy loss is multiplied by `min(π_learner / π_sampler, cap)`. None
    leaves the difference uncorrected."""
    value_coefficient: float = 0.5
    value_clip: float = 0.2
    critic_learning_rate: float = 1e-5
    critic_warmup: int = 0
    """Updates at the beginning in which the critic alone is changed, and of a critic on the policy's trunk its head alone."""
    checkpointed_share: float = 1.0
    """Share of layers whose activations are computed twice instead of kept."""
    compiled: bool = False
    """Compile layers and element-wise work; worth the first minute on a GPU only."""
    seed: int = 0
    """Fixes, with the update's number, which sequence is in which minibatch."""

    def __post_init__(self) -> None:
        if self.minibatches < 1 or self.tokens_per_pass < 1:
            raise ValueError("minibatches and tokens_per_pass must be at least 1")
        if not 0 <= self.checkpointed_share <= 1:
            raise ValueError("checkpointed_share must be from 0 to 1")

    def temperature(self, role: str) -> float:
        """The temperature of log-probabilities of `role`. Greedy samplers record those of temperature 1, so 0 means 1 here."""
        return self.temperatures.get(role, 1.0) or 1.0
