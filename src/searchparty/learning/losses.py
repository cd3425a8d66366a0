"""What one token costs: the objectives, and the quantities measured beside them.

Pure functions of per-token tensors [N]; no model, no roles, no reduction: the caller sums token costs times token weights.
Log-probabilities are in nats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch


@dataclass(frozen=True)
class TokenTargets:
    """What the current policy is compared with, at each selected token."""

    old_logprobs_N: torch.Tensor
    """Under the policy that the ratio is taken against."""
    advantages_N: torch.Tensor
    importance_N: torch.Tensor
    """Constant factor on the policy's part of the loss; 1 without a correction."""


@dataclass(frozen=True)
class TokenLosses:
    """Cost of each token, and what of it is worth showing."""

    loss_N: torch.Tensor
    ratio_N: torch.Tensor
    clipped_N: torch.Tensor
    """1 where the clip bound and the token has no policy gradient, else 0."""


class Objective(Protocol):
    """From log-probabilities to token costs."""

    @property
    def compares(self) -> bool:
        """Whether old log-probabilities mean anything to it; if not, nothing is measured against them."""
        ...

    @property
    def moved_by_advantages_alone(self) -> bool:
        """Whether a token of advantage 0 has no gradient, so that its sequence need not be computed."""
        ...

    def __call__(self, logprobs_N: torch.Tensor, entropies_N: torch.Tensor, targets: TokenTargets) -> TokenLosses: ...


@dataclass(frozen=True)
class PPOClip:
    """`-w min(r A, clip(r, 1 - low, 1 + high) A) - c H` with r = exp(log π - log π_old) (Schulman et al., 2017).

    `low` and `high` may differ: a higher upper bound lets unlikely tokens grow faster. w is `TokenTargets.importance_N`.
    """

    clip_low: float = 0.2
    clip_high: float = 0.2
    entropy_coefficient: float = 0.0

    @property
    def compares(self) -> bool:
        return True

    @property
    def moved_by_advantages_alone(self) -> bool:
        return not self.entropy_coefficient

    def __call__(self, logprobs_N: torch.Tensor, entropies_N: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        ratio = (logprobs_N - targets.old_logprobs_N).exp()
        gain = ratio * targets.advantages_N
        bounded_gain = ratio.clamp(1 - self.clip_low, 1 + self.clip_high) * targets.advantages_N
        loss = -targets.importance_N * torch.minimum(gain, bounded_gain)
        if self.entropy_coefficient:
            loss = loss - self.entropy_coefficient * entropies_N
        return TokenLosses(loss, ratio.detach(), (bounded_gain < gain).float())


@dataclass(frozen=True)
class CrossEntropy:
    """`-log π`: imitation. Advantages and old log-probabilities are not read."""

    @property
    def compares(self) -> bool:
        return False

    @property
    def moved_by_advantages_alone(self) -> bool:
        return False

    def __call__(self, logprobs_N: torch.Tensor, entropies_N: torch.Tensor, targets: TokenTargets) -> TokenLosses:
        constant = torch.ones_like(logprobs_N)
        return TokenLosses(-logprobs_N, constant, 0 * constant)


def truncated_importance(learner_N: torch.Tensor, sampler_N: torch.Tensor, cap: float) -> torch.Tensor:
    """`min(π_learner / π_sampler, cap)` from log-probabilities of the same weights in two implementations, without gradient.

    It corrects, up to the cap, for tokens having been drawn by the sampler's arithmetic and not by the learner's.
    """
    return (learner_N - sampler_N).detach().exp().clamp(max=cap)


def kl_k1(sampled_N: torch.Tensor, other_N: torch.Tensor) -> torch.Tensor:
    """`log p - log q` of tokens drawn from p: unbiased for KL(p ‖ q), may be negative."""
    return sampled_N - other_N


def kl_k2(sampled_N: torch.Tensor, other_N: torch.Tensor) -> torch.Tensor:
    """`(log p - log q)² / 2` of tokens drawn from p: never negative, biased, small variance while p and q are close."""
    return (sampled_N - other_N).square() / 2


def kl_k3(sampled_N: torch.Tensor, other_N: torch.Tensor) -> torch.Tensor:
    """`q/p - 1 - log(q/p)` of tokens drawn from p: unbiased for KL(p ‖ q) and never negative."""
    log_ratio = other_N - sampled_N
    return log_ratio.expm1() - log_ratio


def clipped_value_loss(
    values_N: torch.Tensor, old_values_N: torch.Tensor, returns_N: torch.Tensor, clip: float
) -> torch.Tensor:
    """`max((V - R)², (V_clip - R)²) / 2` with V_clip within `clip` of the old value: the critic, too, moves in small steps."""
    near = old_values_N + (values_N - old_values_N).clamp(-clip, clip)
    return torch.maximum((values_N - returns_N).square(), (near - returns_N).square()) / 2
