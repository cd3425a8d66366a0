"""A value for every action token: what is still to be won, seen just before the token is sampled.

Knows hidden states; must not know rewards or how returns are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from searchparty.learning.batches import PackedRow
from searchparty.learning.packed_model import PackedModel


class ValueHead(torch.nn.Module):
    """One number from a hidden state. Starts at 0, so that an untrained critic says nothing; kept in float32."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(hidden_size, 1)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, hidden_NH: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = self.linear(hidden_NH.float())[:, 0]
        return values


class Critic:
    """A value head on the policy's own trunk, or, if `model` is given, on a model of its own.

    On the policy's trunk it costs next to nothing, and its loss shapes the trunk too. A separate model costs as much as the
    policy and leaves the policy alone.
    """

    def __init__(self, hidden_size: int, model: PackedModel | None = None) -> None:
        self.head = ValueHead(hidden_size)
        self.model = model

    @classmethod
    def on_trunk(cls, policy: Any) -> Critic:
        """A head on the trunk of `policy`, a causal language model of transformers."""
        critic = cls(int(policy.config.hidden_size))
        critic.head.to(policy.device)
        return critic

    @classmethod
    def separate(cls, model: Any, *, checkpointed_share: float = 0.0, compiled: bool = False) -> Critic:
        """A head on `model`, a causal language model of transformers whose output layer is not used."""
        packed = PackedModel(model, checkpointed_share=checkpointed_share, compiled=compiled)
        critic = cls(int(model.config.hidden_size), packed)
        critic.head.to(packed.device)
        return critic

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """What is trained for the critic alone: the head, and the trunk of its own model."""
        for name, parameter in self.head.named_parameters():
            yield f"head.{name}", parameter
        if self.model is not None:
            for name, parameter in self.model.trunk.named_parameters():
                yield f"trunk.{name}", parameter

    def values(self, row: PackedRow[Any], policy_hidden_NH: torch.Tensor) -> torch.Tensor:
        """Values before the row's selected tokens, float32 [N]. Needs `active()` of the model that it reads with."""
        hidden = policy_hidden_NH if self.model is None else self.model.hidden(row)
        values: torch.Tensor = self.head(hidden)
        return values
