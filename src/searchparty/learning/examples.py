"""A signal made ready for an update, and what a packed row of them costs.

Knows token arrays, an objective and settings; runs no model: log-probabilities and values are given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from searchparty.credit.types import BoolArray, FloatArray, IntArray, SequenceKey, Signal
from searchparty.learning.batches import PackedRow
from searchparty.learning.faults import NonFinite
from searchparty.learning.losses import Objective, TokenTargets, clipped_value_loss, kl_k3, truncated_importance
from searchparty.learning.metrics import RoleSums
from searchparty.learning.settings import LearnerSettings


@dataclass
class Example:
    """A signal, with what the learner found for it before the first minibatch."""

    key: SequenceKey
    role: str
    ids_T: IntArray
    trainable_T: BoolArray
    weights_T: FloatArray
    advantages_T: FloatArray
    sampler_logprobs_T: FloatArray
    """As recorded when the tokens were sampled."""
    learner_logprobs_T: FloatArray | None
    """The learner's own, before the first minibatch; None if they were not computed."""
    old_logprobs_T: FloatArray
    """The one of the two that the ratio is taken against."""
    returns_T: FloatArray
    has_return_T: FloatArray
    """1 if the signal has returns, else 0."""
    old_values_T: FloatArray
    """The critic's values before the first minibatch, those of the signal if it has any; 0 without a critic."""


def example_of(
    signal: Signal, learner_logprobs_T: FloatArray | None, old_values_T: FloatArray | None, settings: LearnerSettings
) -> Example:
    """The example of a signal. `learner_logprobs_T` is needed if old log-probabilities are to be recomputed."""
    nothing = np.zeros(len(signal.ids_T), np.float32)
    if signal.values_T is not None:
        old_values_T = signal.values_T
    recomputed = settings.old_logprobs == "recomputed" and learner_logprobs_T is not None
    return Example(
        key=signal.key,
        role=signal.role,
        ids_T=signal.ids_T,
        trainable_T=signal.trainable_T,
        weights_T=signal.weights_T,
        advantages_T=signal.advantages_T,
        sampler_logprobs_T=signal.old_logprobs_T,
        learner_logprobs_T=learner_logprobs_T,
        old_logprobs_T=learner_logprobs_T if recomputed and learner_logprobs_T is not None else signal.old_logprobs_T,
        returns_T=nothing if signal.returns_T is None else signal.returns_T,
        has_return_T=nothing if signal.returns_T is None else nothing + 1,
        old_values_T=nothing if old_values_T is None else old_values_T,
    )


def row_loss(
    row: PackedRow[Example],
    logprobs_N: torch.Tensor,
    entropies_N: torch.Tensor,
    values_N: torch.Tensor | None,
    objective: Objective,
    settings: LearnerSettings,
    sums: RoleSums,
) -> torch.Tensor:
    """The row's part of the update's objective, a scalar with gradient; its numbers are added to `sums`.

    Raises:
        NonFinite: naming the sequences, before anything is added to `sums`.
    """
    weights = row.gather(lambda example: example.weights_T)
    sampler = row.gather(lambda example: example.sampler_logprobs_T)
    old = row.gather(lambda example: example.old_logprobs_T) if objective.compares else logprobs_N.detach()
    importance = torch.ones_like(old)
    if objective.compares and settings.old_logprobs == "recomputed" and settings.importance_cap is not None:
        importance = truncated_importance(old, sampler, settings.importance_cap)
    advantages = row.gather(lambda example: example.advantages_T)
    costs = objective(logprobs_N, entropies_N, TokenTargets(old, advantages, importance))
    weighted_N = weights * costs.loss_N
    checks = {
        "sampler's log-probability": sampler,
        "old log-probability": old,
        "log-probability": logprobs_N,
        "loss": weighted_N,
    }
    loss_N = costs.loss_N
    numbers = {}
    if values_N is not None:
        has_return, returns = row.gather(lambda example: example.has_return_T), row.gather(lambda example: example.returns_T)
        old_values = row.gather(lambda example: example.old_values_T)
        value_losses = has_return * clipped_value_loss(values_N, old_values, returns, settings.value_clip)
        error = has_return * (returns - old_values)
        loss_N = loss_N + settings.value_coefficient * value_losses
        checks["value loss"] = value_losses
        numbers = {
            "value": value_losses,
            "value_tokens": has_return,
            "value_clipped": has_return * ((values_N - old_values).abs() > settings.value_clip).float(),
            "old_value": has_return * old_values,
            "return": has_return * returns,
            "return_square": (has_return * returns).double().square(),
            "error": error,
            "error_square": error.double().square(),
        }
    _require_finite(checks, row)
    sums.add(
        role_indices(row, sums),
        tokens=torch.ones_like(weights),
        loss=weighted_N,
        ratio=costs.ratio_N,
        clipped=costs.clipped_N,
        entropy=entropies_N,
        kl=kl_k3(old, logprobs_N),
        **numbers,
    )
    return (weights * loss_N).sum()


def role_indices(row: PackedRow[Example], sums: RoleSums) -> torch.Tensor:
    """Index into `sums.roles` of each selected token [N]."""
    roles_S = torch.tensor([sums.roles.index(example.role) for example in row.sequences], device=row.sequence_N.device)
    return roles_S[row.sequence_N]


def _require_finite(checks: dict[str, torch.Tensor], row: PackedRow[Example]) -> None:
    """Raises NonFinite for the first check that fails. The device is asked once."""
    finite_CN = torch.stack([tensor.detach().isfinite() for tensor in checks.values()])
    if bool(finite_CN.all()):
        return
    what, finite_N = next((what, finite) for what, finite in zip(checks, finite_CN, strict=True) if not bool(finite.all()))
    bad = sorted(set(row.sequence_N[~finite_N].tolist()))
    raise NonFinite(what, [row.sequences[place].key for place in bad])
