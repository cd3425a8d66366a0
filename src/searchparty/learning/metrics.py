"""What an update reports, by role: plain numbers, and how they are summed up over passes without stopping the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from searchparty.learning.losses import kl_k3


@dataclass(frozen=True)
class RoleMetrics:
    """One role in one update. Means are over its tokens with weight, each at the moment its minibatch was computed."""

    tokens: int
    loss: float
    """Sum over tokens of weight times cost: its part of the objective."""
    ratio: float
    clip_fraction: float
    entropy: float
    approx_kl: float
    """Estimate (k3) of KL(old ‖ current), in nats a token: how far the update has moved from the policy it started with."""
    value_loss: float | None
    """Mean over tokens; None without a critic, like the four below."""
    value_clip_fraction: float | None
    """Share of tokens whose value had moved by more than the clip."""
    value: float | None
    """Mean value before the update."""
    returns: float | None
    """Mean of what the values are to become."""
    explained_variance: float | None
    """1 − Var(return − value before the update) / Var(return): 1 for a critic that knew the returns, 0 for one that knew only
    their mean. None also where all returns are equal."""
    mismatch_tokens: int
    """Tokens at which sampler and learner were compared with equal weights: all when old log-probabilities are recomputed,
    those of the first minibatch otherwise."""
    mismatch: float | None
    """Mean absolute difference of log-probability between sampler and learner; None if no token was compared."""
    mismatch_max: float | None
    mismatch_kl: float | None
    """Estimate (k3) of KL(sampler ‖ learner), in nats a token."""


@dataclass(frozen=True)
class UpdateMetrics:
    """One update."""

    roles: Mapping[str, RoleMetrics]
    optimizer_steps: int
    learning_rate: float
    """Of the last minibatch."""
    gradient_norm: float
    """Mean over minibatches, before clipping; of the policy's parameters."""
    sequences: int
    tokens: int
    """Tokens read by the model in forward passes with gradient."""
    passes: int
    fill: float
    """`tokens` as a share of what the passes could have held; above 1 if sequences are longer than a pass should be."""


_SUMS = (
    "tokens", "loss", "ratio", "clipped", "entropy", "kl", "value_tokens", "value", "value_clipped", "old_value", "return",
    "return_square", "error", "error_square", "compared", "mismatch", "mismatch_kl",
)  # fmt: skip


class RoleSums:
    """Running sums by role in float64 on the device; read once, at the end."""

    def __init__(self, roles: Sequence[str], device: torch.device) -> None:
        self.roles = list(dict.fromkeys(roles))
        self._sums = {name: torch.zeros(len(self.roles), dtype=torch.float64, device=device) for name in _SUMS}
        self._largest = torch.zeros(len(self.roles), device=device)

    def add(self, role_N: torch.Tensor, **values_N: torch.Tensor) -> None:
        """Add per-token values to the sums of those names. `role_N` holds indices into `roles`."""
        for name, values in values_N.items():
            self._sums[name].index_add_(0, role_N, values.detach().double())

    def add_mismatch(self, role_N: torch.Tensor, sampler_N: torch.Tensor, learner_N: torch.Tensor) -> None:
        """Compare log-probabilities of the same tokens under the same weights."""
        difference = (learner_N - sampler_N).abs()
        self._largest.scatter_reduce_(0, role_N, difference, "amax")
        one = torch.ones_like(difference)
        self.add(role_N, compared=one, mismatch=difference, mismatch_kl=kl_k3(sampler_N, learner_N))

    def metrics(self) -> dict[str, RoleMetrics]:
        """The means by role."""
        sums = {name: tensor.tolist() for name, tensor in self._sums.items()}
        largest = self._largest.tolist()
        result = {}
        for place, role in enumerate(self.roles):
            of = {name: column[place] for name, column in sums.items()}
            tokens, valued, compared = of["tokens"], of["value_tokens"], of["compared"]
            result[role] = RoleMetrics(
                tokens=int(tokens),
                loss=of["loss"],
                ratio=of["ratio"] / tokens,
                clip_fraction=of["clipped"] / tokens,
                entropy=of["entropy"] / tokens,
                approx_kl=of["kl"] / tokens,
                value_loss=of["value"] / valued if valued else None,
                value_clip_fraction=of["value_clipped"] / valued if valued else None,
                value=of["old_value"] / valued if valued else None,
                returns=of["return"] / valued if valued else None,
                explained_variance=_explained(of, valued),
                mismatch_tokens=int(compared),
                mismatch=of["mismatch"] / compared if compared else None,
                mismatch_max=largest[place] if compared else None,
                mismatch_kl=of["mismatch_kl"] / compared if compared else None,
            )
        return result


def _explained(of: Mapping[str, float], valued: float) -> float | None:
    """The share of the returns' variance that the values explain, from sums over `valued` tokens."""
    if not valued:
        return None
    spread = of["return_square"] / valued - (of["return"] / valued) ** 2
    left = of["error_square"] / valued - (of["error"] / valued) ** 2
    return 1 - left / spread if spread > 1e-12 * max(1.0, of["return_square"] / valued) else None
