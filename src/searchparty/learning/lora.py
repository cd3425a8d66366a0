"""Training a small addition to a few matrices instead of the whole model (LoRA; Hu et al., 2021), by the package peft.

Knows modules and weights; the learner does not notice: it trains what requires a gradient.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from searchparty.errors import UserError, missing_package


@dataclass(frozen=True)
class LoRA:
    """Which matrices get an addition `scale / rank * B A`, with B at 0 in the beginning."""

    rank: int = 16
    scale: float = 32.0
    modules: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Last parts of the modules' names."""


def add_lora(model: Any, lora: LoRA, seed: int = 0) -> None:
    """Put additions into `model`, in place, and freeze everything else.

    The additions are drawn from `seed`; torch's own random state is not touched.

    Raises:
        UserError: if peft is missing, or no module has one of the names.
    """
    try:
        peft = importlib.import_module("peft")
    except ImportError:
        raise missing_package("peft", "lora", "training with LoRA") from None
    names = {name.rsplit(".", 1)[-1] for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    if unknown := sorted(set(lora.modules) - names):
        raise UserError(f"lora.modules: the model has no {', '.join(unknown)}; it has: {', '.join(sorted(names))}")
    if model.get_output_embeddings() is getattr(model, "lm_head", None) and "lm_head" in lora.modules:
        raise UserError("lora.modules: the output layer lm_head cannot have an addition; leave it out")
    config = peft.LoraConfig(r=lora.rank, lora_alpha=lora.scale, target_modules=list(lora.modules), lora_dropout=0.0)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        peft.inject_adapter_in_model(config, model)


def merged_weights(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """All weights of `model` under the names they have without additions, with the additions worked in.

    Weights without an addition are not copied. Tied weights come once, under their first name.
    """
    additions = {name: module for name, module in model.named_modules() if hasattr(module, "get_delta_weight")}
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            continue
        owner, found, rest = name.partition(".base_layer.")
        if found and rest == "weight":
            with torch.no_grad():
                delta = additions[owner].get_delta_weight("default")
                yield f"{owner}.weight", (parameter.float() + delta.float()).to(parameter.dtype)
        else:
            yield name.replace(".base_layer.", "."), parameter.detach()
