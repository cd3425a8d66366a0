"""The tiny policy's transformer, and the weights that training begins with.

Knows the syllables of the world's names; nothing of training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from searchparty.tiny.tokenizer import CONTROL_TOKENS
from searchparty.world.names import SYLLABLES

WEIGHT_STD = 0.08
RESIDUAL_SHARE = 0.1
"""Output matrices of attention and feed-forward parts are smaller by this factor: at first the tokens themselves count most."""
SYLLABLE_LIKENESS = 0.7
"""Cosine between a syllable's first vector and that of the same syllable after a blank."""


@dataclass(frozen=True)
class Shape:
    """The size of the transformer; the default has 0.84 million parameters."""

    width: int = 128
    layers: int = 4
    heads: int = 4
    feed_forward: int = 320
    context_tokens: int = 1024


def new_model(tokenizer: Tokenizer, shape: Shape, seed: int) -> Any:
    """A Llama model in float32 with its first weights. Equal arguments give equal weights; torch's global seed is set."""
    torch.manual_seed(seed)
    filler, _, end = (tokenizer.token_to_id(token) for token in CONTROL_TOKENS)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=shape.width,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=shape.context_tokens,
        attention_bias=True,  # with it a head can attend by distance alone
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=True,
        initializer_range=WEIGHT_STD,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=filler,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight *= RESIDUAL_SHARE
            layer.mlp.down_proj.weight *= RESIDUAL_SHARE
        _relate_syllables(model.get_input_embeddings().weight, tokenizer)
    return model


def _relate_syllables(vectors_VH: torch.Tensor, tokenizer: Tokenizer) -> None:
    """A name is spelt with other tokens after a blank than at the start of a line; the two begin alike."""
    for syllable in SYLLABLES:
        bare, spaced = tokenizer.token_to_id(syllable), tokenizer.token_to_id(f"Ġ{syllable}")
        own = (1 - SYLLABLE_LIKENESS**2) ** 0.5
        vectors_VH[spaced] = SYLLABLE_LIKENESS * vectors_VH[bare] + own * vectors_VH[spaced]
