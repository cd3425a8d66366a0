"""A Hugging Face causal model that reads packed rows and gives hidden states.

Knows the model's parts (trunk, layers, output layer) and how to run them fast; must not know what the hidden states are for.
The module itself is left as it was found: packing, checkpointing and compiling hold only inside `active()`, so that a sampler
in the same process can use the same module between updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from searchparty.errors import UserError, missing_package
from searchparty.learning.batches import PackedRow
from searchparty.learning.packed_attention import NAME, packed_attention

try:
    from transformers import AttentionInterface
    from transformers.modeling_layers import GradientCheckpointingLayer
except ImportError as error:
    raise missing_package(error.name or "transformers", "train", "training") from None

AttentionInterface.register(NAME, packed_attention)

HIDDEN_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.05}
"""Largest mean difference between the model's own log-probabilities and ours that rounding explains, by precision."""


class PackedModel:
    """Runs `model` over packed rows. `trunk` gives hidden states, `head` turns them into logits.

    Args:
        model: any causal language model of transformers whose attention can be exchanged.
        checkpointed_share: share of the layers, evenly spread, whose activations are computed again in the backward pass
            instead of kept: 1 needs least memory, 0 least time.
        compiled: whether layers are compiled; worth the first minute on a GPU only.
    """

    def __init__(self, model: Any, *, checkpointed_share: float = 0.0, compiled: bool = False) -> None:
        self.model = model
        self.trunk = model.base_model
        self.head = model.get_output_embeddings()
        self._config = self.trunk.config
        layers = [module for module in self.trunk.modules() if isinstance(module, GradientCheckpointingLayer)]
        self._forwards = [
            (layer, _layer_forward(layer.forward, checkpointed, compiled))
            for layer, checkpointed in zip(layers, _spread(len(layers), checkpointed_share), strict=True)
        ]

    @property
    def device(self) -> torch.device:
        """Where rows must be."""
        device: torch.device = self.head.weight.device
        return device

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within this block, which must not be nested, `hidden` may be called and gradients may flow back through it."""
        implementation = self._config._attn_implementation
        self._config._attn_implementation = NAME
        for layer, forward in self._forwards:
            layer.forward = forward
        try:
            yield
        finally:
            for layer, _ in self._forwards:
                del layer.forward
            self._config._attn_implementation = implementation

    def hidden(self, row: PackedRow[Any]) -> torch.Tensor:
        """Hidden states after the last norm, at the places that predict the row's selected tokens [N, hidden size]."""
        output = self.trunk(
            input_ids=row.ids_T[None],
            position_ids=row.positions_T[None],
            attention_mask=None,
            use_cache=False,
            cu_seq_lens_q=row.bounds_S,
            cu_seq_lens_k=row.bounds_S,
            max_length_q=row.longest,
            max_length_k=row.longest,
        )
        states: torch.Tensor = output[0][0]
        return states.index_select(0, row.source_N)

    def check(self, row: PackedRow[Any]) -> None:
        """Compare log-probabilities in this packed row with the model's own, one sequence at a time.

        Raises:
            UserError: if they differ by more than rounding: an architecture that cannot be trained this way.
        """
        name = type(self.model).__name__
        if not isinstance(self.head, torch.nn.Linear) or self.head.bias is not None:
            raise UserError(
                f"{name}: its output layer is no plain matrix; such models cannot be trained here, take another model"
            )
        with torch.no_grad():
            own = [
                self.model(input_ids=torch.from_numpy(sequence.ids_T[None].astype(np.int64)).to(self.device)).logits[
                    0, chosen - 1
                ]
                for sequence, chosen in zip(row.sequences, row.selections, strict=True)
            ]
            try:
                with self.active():
                    ours = self.head(self.hidden(row))
            except (NotImplementedError, TypeError) as error:
                raise UserError(f"{name}: cannot be trained on packed sequences ({error}); take another model") from None
        expected, found = torch.cat(own).float().log_softmax(-1), ours.float().log_softmax(-1)
        places = row.target_N[:, None]
        difference = float((expected.gather(1, places) - found.gather(1, places)).abs().mean())
        if not difference < HIDDEN_TOLERANCE[self.head.weight.dtype]:
            raise UserError(
                f"{name}: log-probabilities of packed sequences differ from the model's own by {difference:.3g} on average;"
                " this architecture cannot be trained here, take another model"
            )


def _spread(count: int, share: float) -> list[bool]:
    """`round(share * count)` of `count` places, evenly spread."""
    chosen = round(share * count)
    return [(place + 1) * chosen // count > place * chosen // count for place in range(count)]


def _layer_forward(forward: Callable[..., Any], checkpointed: bool, compiled: bool) -> Callable[..., Any]:
    inner = torch.compile(forward, dynamic=True) if compiled else forward
    return partial(_recomputed, inner) if checkpointed else inner


def _recomputed(forward: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    if not torch.is_grad_enabled():
        return forward(*arguments, **options)
    return checkpoint(forward, *arguments, use_reentrant=False, preserve_rng_state=False, **options)
