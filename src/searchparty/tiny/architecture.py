"""The tiny policy's transformer, and the weights that training begins with.

The weights are random but for one circuit. In this world nearly every name that a role writes was read before, so copying is
what there is to learn; from random weights it is also what is learned last, long after a laptop's patience. Two heads are
therefore given values under which they copy, and are then trained like all others:

- in the first layer a head attends to the token before, and notes that token at its place;
- in the second layer a head attends to the places that noted the current token, and adds what stands there to the prediction.

Olsson et al. (2022), "In-context learning and induction heads", describe this pair in trained models; starting from a structure
known from trained models is the idea of Trockman and Kolter (2023), "Mimetic initialization of self-attention layers".
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
PREVIOUS_SCORE = 10.0
"""Attention score of the token before, per rotating pair of dimensions; others score lower the more the pair turns."""
MATCH_GAIN = 10.0
NOTE_GAIN, COPY_GAIN = 0.1, 0.8
SLOW = 0.006
"""Pairs that turn by less than so many radians a token still match at the distances of the world's histories."""


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
        attention_bias=True,  # without biases a head could not attend by distance alone
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
        _wire_copying(model)
    return model


def _relate_syllables(vectors_VH: torch.Tensor, tokenizer: Tokenizer) -> None:
    """A name is spelt with other tokens after a blank than at the start of a line; the two begin alike."""
    for syllable in SYLLABLES:
        bare, spaced = tokenizer.token_to_id(syllable), tokenizer.token_to_id(f"Ġ{syllable}")
        own = (1 - SYLLABLE_LIKENESS**2) ** 0.5
        vectors_VH[spaced] = SYLLABLE_LIKENESS * vectors_VH[bare] + own * vectors_VH[spaced]


def _wire_copying(model: Any) -> None:
    """Set head 0 of the first two layers as the module describes. Rows of a head's matrices are its own dimensions."""
    width, head = model.config.hidden_size, model.config.hidden_size // model.config.num_attention_heads
    turning = model.model.rotary_emb.inv_freq  # radians per token of each pair (i, i + head / 2)
    content, note, copied = (_orthonormal_rows(head, width) for _ in range(3))

    first = model.model.layers[0].self_attn
    strength = (PREVIOUS_SCORE * head**0.5) ** 0.5
    first.q_proj.weight[:head] = 0
    first.k_proj.weight[:head] = 0
    # Keys point one way, queries the same way turned back by one token: they are in phase at the token before.
    first.k_proj.bias[:head] = strength * torch.cat([torch.ones_like(turning), torch.zeros_like(turning)])
    first.q_proj.bias[:head] = strength * torch.cat([turning.cos(), -turning.sin()])
    first.v_proj.weight[:head] = content
    first.o_proj.weight[:, :head] = NOTE_GAIN * note.T

    second = model.model.layers[1].self_attn
    slow = (turning < SLOW).float().repeat(2)[:, None]
    second.q_proj.weight[:head] = MATCH_GAIN**0.5 * content * slow
    second.k_proj.weight[:head] = MATCH_GAIN**0.5 * note * slow
    second.v_proj.weight[:head] = copied
    second.o_proj.weight[:, :head] = COPY_GAIN * copied.T


def _orthonormal_rows(rows: int, columns: int) -> torch.Tensor:
    columns_first: torch.Tensor = torch.linalg.qr(torch.randn(columns, rows)).Q
    return columns_first.T.contiguous()
