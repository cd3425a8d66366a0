"""Log-probability and entropy at given tokens, from hidden states, a chunk of tokens at a time.

Knows one matrix (the output layer) and ids. The logits [tokens x vocabulary] are never held: the backward pass computes each
chunk's logits again. With z the logits divided by the temperature and p their softmax, the gradients are

    d log p(a) / dz_j = 1[j = a] - p_j            d H / dz_j = -p_j (log p_j + H).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

CPU_LOGITS = 2**22
"""Logits of one chunk on a CPU: 16 MiB in float32, about what its caches hold."""
GPU_LOGITS = 2**29
"""Logits of one chunk on a GPU: 2 GiB in float32; smaller chunks make the matrix products inefficient."""


def token_logprobs(
    hidden_NH: torch.Tensor,
    weight_VH: torch.Tensor,
    ids_N: torch.Tensor,
    temperature_N: torch.Tensor,
    *,
    compiled: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each id and entropy of each distribution, both float32 [N], in nats, differentiable.

    Args:
        hidden_NH: the state that predicts each token.
        weight_VH: the output layer.
        temperature_N: sampling temperature at each token, above 0; results are those of the distribution sampled from.
        compiled: whether element-wise work on a chunk is fused; worth it on a GPU only.
    """
    statistics: tuple[torch.Tensor, torch.Tensor]
    statistics = _TokenLogprobs.apply(hidden_NH, weight_VH, ids_N, temperature_N.float(), compiled)  # type: ignore[no-untyped-call]
    return statistics


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, ids: torch.Tensor, temperature: torch.Tensor, compiled: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        statistics = _fused(_statistics, compiled)
        parts = [
            statistics(hidden[chunk] @ weight.T, ids[chunk], temperature[chunk])
            for chunk in _chunks(len(ids), len(weight), hidden.device)
        ]
        logprobs, normalizers, entropies = (torch.cat(column) for column in zip(*parts, strict=True))
        ctx.save_for_backward(hidden, weight, ids, temperature, normalizers, entropies)
        ctx.compiled = compiled
        ctx.set_materialize_grads(False)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        hidden, weight, ids, temperature, normalizers, entropies = ctx.saved_tensors
        of_logprob, of_entropy = gradients
        zero = torch.zeros_like(entropies)
        of_logprob = zero if of_logprob is None else of_logprob
        gradient = _fused(_logit_gradient, ctx.compiled)
        of_hidden = torch.empty_like(hidden)
        of_weight = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        for chunk in _chunks(len(ids), len(weight), hidden.device):
            of_logits = gradient(
                hidden[chunk] @ weight.T, ids[chunk], temperature[chunk], normalizers[chunk], entropies[chunk],
                of_logprob[chunk], None if of_entropy is None else of_entropy[chunk],
            )  # fmt: skip
            of_hidden[chunk] = of_logits @ weight
            if of_weight is not None:
                of_weight += of_logits.T @ hidden[chunk]
        return of_hidden, None if of_weight is None else of_weight.to(weight.dtype), None, None, None


def _statistics(
    logits: torch.Tensor, ids: torch.Tensor, temperature: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probability of the ids, logarithm of the normalizer, and entropy."""
    scaled = logits.float() / temperature[:, None]
    normalizer = scaled.logsumexp(dim=-1)
    logprob = scaled.gather(1, ids[:, None])[:, 0] - normalizer
    mean_score = ((scaled - normalizer[:, None]).exp() * scaled).sum(dim=-1)
    return logprob, normalizer, normalizer - mean_score


def _logit_gradient(
    logits: torch.Tensor, ids: torch.Tensor, temperature: torch.Tensor, normalizer: torch.Tensor, entropy: torch.Tensor,
    of_logprob: torch.Tensor, of_entropy: torch.Tensor | None,
) -> torch.Tensor:  # fmt: skip
    """Gradient with respect to the undivided logits, in their own precision."""
    logprobs = logits.float() / temperature[:, None] - normalizer[:, None]
    is_id = torch.arange(logits.shape[1], device=ids.device) == ids[:, None]
    factor = (
        -of_logprob[:, None]
        if of_entropy is None
        else -of_logprob[:, None] - of_entropy[:, None] * (logprobs + entropy[:, None])
    )
    gradient = logprobs.exp() * factor + is_id * of_logprob[:, None]
    return (gradient / temperature[:, None]).to(logits.dtype)


@cache
def _fused(function: Callable[..., Any], compiled: bool) -> Callable[..., Any]:
    return torch.compile(function, dynamic=True) if compiled else function


def _chunks(tokens: int, vocabulary: int, device: torch.device) -> list[slice]:
    size = max(1, (GPU_LOGITS if device.type == "cuda" else CPU_LOGITS) // vocabulary)
    return [slice(begin, min(begin + size, tokens)) for begin in range(0, tokens, size)]
