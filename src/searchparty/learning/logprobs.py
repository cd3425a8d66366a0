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
    temperature_N: torch.Tensor | None = None,
    *,
    compiled: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each id and entropy of each distribution, both float32 [N], in nats, differentiable.

    Args:
        hidden_NH: the state that predicts each token.
        weight_VH: the output layer.
        temperature_N: sampling temperature at each token, above 0, float32; results are those of the distribution sampled from.
            None means 1 everywhere, which spares a pass over the logits.
        compiled: whether element-wise work on a chunk is fused; worth it on a GPU only.
    """
    statistics: tuple[torch.Tensor, torch.Tensor]
    statistics = _TokenLogprobs.apply(hidden_NH, weight_VH, ids_N, temperature_N, compiled)  # type: ignore[no-untyped-call]
    return statistics


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        ids: torch.Tensor,
        temperature: torch.Tensor | None,
        compiled: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        statistics = _fused(_statistics, compiled)
        parts = [
            statistics(hidden[chunk] @ weight.T, ids[chunk], _part(temperature, chunk))
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
        if of_logprob is None:
            of_logprob = torch.zeros_like(entropies)
        gradient = _fused(_logit_gradient, ctx.compiled)
        of_hidden = torch.empty_like(hidden)
        of_weight = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        for chunk in _chunks(len(ids), len(weight), hidden.device):
            of_logits = gradient(
                hidden[chunk] @ weight.T,
                ids[chunk],
                _part(temperature, chunk),
                normalizers[chunk],
                entropies[chunk],
                of_logprob[chunk],
                _part(of_entropy, chunk),
            )
            of_hidden[chunk] = of_logits @ weight
            if of_weight is not None:
                of_weight += of_logits.T @ hidden[chunk]
        return of_hidden, None if of_weight is None else of_weight.to(weight.dtype), None, None, None


def _statistics(
    logits: torch.Tensor, ids: torch.Tensor, temperature: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probability of the ids, logarithm of the normalizer, and entropy."""
    scores = _scores(logits, temperature)
    largest = scores.amax(dim=-1)
    powers = (scores - largest[:, None]).exp_()
    total = powers.sum(dim=-1)
    normalizer = largest + total.log()
    mean_score = torch.linalg.vecdot(powers, scores) / total
    return scores.gather(1, ids[:, None])[:, 0] - normalizer, normalizer, normalizer - mean_score


def _logit_gradient(
    logits: torch.Tensor,
    ids: torch.Tensor,
    temperature: torch.Tensor | None,
    normalizer: torch.Tensor,
    entropy: torch.Tensor,
    of_logprob: torch.Tensor,
    of_entropy: torch.Tensor | None,
) -> torch.Tensor:
    """Gradient with respect to the logits before division by the temperature, in their own precision."""
    if temperature is not None:
        of_logprob = of_logprob / temperature
        of_entropy = None if of_entropy is None else of_entropy / temperature
    logprobs = _scores(logits, temperature) - normalizer[:, None]
    if of_entropy is None:
        gradient = logprobs.exp_().mul_(-of_logprob[:, None])
    else:
        probabilities = logprobs.exp()
        gradient = logprobs.mul_(-of_entropy[:, None]).sub_((of_logprob + of_entropy * entropy)[:, None]).mul_(probabilities)
    return gradient.scatter_add_(1, ids[:, None], of_logprob[:, None].to(gradient.dtype)).to(logits.dtype)


def _scores(logits: torch.Tensor, temperature: torch.Tensor | None) -> torch.Tensor:
    scores = logits.float()
    return scores if temperature is None else scores / temperature[:, None]


def _part(tensor: torch.Tensor | None, chunk: slice) -> torch.Tensor | None:
    return None if tensor is None else tensor[chunk]


@cache
def _fused(function: Callable[..., Any], compiled: bool) -> Callable[..., Any]:
    return torch.compile(function, dynamic=True) if compiled else function


def _chunks(tokens: int, vocabulary: int, device: torch.device) -> list[slice]:
    size = max(1, (GPU_LOGITS if device.type == "cuda" else CPU_LOGITS) // vocabulary)
    return [slice(begin, min(begin + size, tokens)) for begin in range(0, tokens, size)]
