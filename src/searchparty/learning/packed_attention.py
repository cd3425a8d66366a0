"""Causal attention within each sequence of a packed row, as an attention function of transformers.

Knows tensors and where sequences begin. On a GPU in half precision one kernel for sequences of varying length does it;
elsewhere each sequence is attended to by itself. Neither ever holds a mask of [tokens x tokens] for a whole row.
"""

from __future__ import annotations

import inspect
from typing import Any, cast

import torch
from torch.nn.functional import scaled_dot_product_attention

try:
    from torch.nn.attention.varlen import varlen_attn

    VARLEN_OPTIONS = frozenset(inspect.signature(varlen_attn).parameters)
except ImportError:
    VARLEN_OPTIONS = frozenset()

NAME = "searchparty_packed"
"""Under this name the function is registered with transformers; `packed_model` puts it in a model's configuration."""

UNSUPPORTED = ("softcap", "s_aux", "position_bias")
"""Arguments with which some architectures change the scores. A model that passes one is refused, not approximated."""


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    cu_seq_lens_q: torch.Tensor,
    max_length_q: int,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of a row.

    Args:
        query: [1, heads, tokens, head size]; key and value likewise, with possibly fewer heads.
        attention_mask: must be None; the bounds say it all.
        cu_seq_lens_q: begin of each sequence, and the row's length: int32 [sequences + 1].
        max_length_q: tokens of the longest sequence.
        sliding_window: tokens that a token sees, itself included; None for all before it.

    Returns:
        [1, tokens, heads, head size], and None in place of attention weights.

    Raises:
        NotImplementedError: for an architecture that changes the scores in a way not known here.
    """
    unknown = [name for name in UNSUPPORTED if options.get(name) is not None]
    if unknown or attention_mask is not None:
        raise NotImplementedError(f"packed attention knows no {', '.join(unknown) or 'attention mask'}")
    if VARLEN_OPTIONS and query.is_cuda and query.dtype in (torch.bfloat16, torch.float16):
        return _varying_length(query, key, value, cu_seq_lens_q, max_length_q, scaling, sliding_window)[None], None
    return _one_by_one(query, key, value, cu_seq_lens_q, scaling, sliding_window), None


def _varying_length(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    bounds: torch.Tensor, longest: int, scaling: float | None, window: int | None,
) -> torch.Tensor:  # fmt: skip
    """One kernel call for the whole row; its options differ between versions of torch."""
    options: dict[str, Any] = {}
    if "window_size" in VARLEN_OPTIONS:
        options["window_size"] = (-1 if window is None else window - 1, 0)
    elif window is None:
        options["is_causal"] = True
    else:
        raise NotImplementedError(
            "this version of torch has no sliding window for packed sequences; install torch 2.11 or later"
        )
    groups = query.shape[1] // key.shape[1]
    if groups > 1 and "enable_gqa" in VARLEN_OPTIONS:
        options["enable_gqa"] = True
    elif groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    if scaling is not None and "scale" in VARLEN_OPTIONS:
        options["scale"] = scaling
    elif scaling is not None:
        query = query * (scaling * query.shape[-1] ** 0.5)
    query, key, value = (tensor[0].transpose(0, 1).contiguous() for tensor in (query, key, value))
    return cast(torch.Tensor, varlen_attn(query, key, value, bounds, bounds, longest, longest, **options))


def _one_by_one(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bounds: torch.Tensor, scaling: float | None, window: int | None
) -> torch.Tensor:
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    lengths = bounds.diff().tolist()
    outputs = []
    for part in zip(*(torch.split(tensor, lengths, dim=2) for tensor in (query, key, value)), strict=True):
        mask = None if window is None else _window_mask(part[0].shape[2], window, query.device)
        outputs.append(scaled_dot_product_attention(part[0], part[1], part[2], mask, 0.0, mask is None, scale=scaling))
    return torch.cat(outputs, dim=2).transpose(1, 2)


def _window_mask(length: int, window: int, device: torch.device) -> torch.Tensor | None:
    """Which tokens each one sees [length, length]; None if the window holds them all."""
    if length <= window:
        return None
    place = torch.arange(length, device=device)
    distance = place[:, None] - place[None, :]
    return (distance >= 0) & (distance < window)
