"""Turns a GGUF chat model into an ordinary model folder (config, safetensors in float32, tokenizer with chat template).

Float32 holds every dequantised value exactly. Three things are put right that a plain conversion leaves wrong: an output matrix
that is only another quantisation of the embedding is tied to it again (the finer copy is kept), the folder says nothing of
quantisation (else it could not be trained or saved), and the tokenizer gets its family's own pre-tokenizer (SmolLM splits
digits). Knows the families llama, qwen2 and qwen3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from searchparty.errors import UserError
from searchparty.models.gguf_file import GGUFFile
from searchparty.models.gguf_tokenizer import write_tokenizer

Array = np.ndarray[Any, np.dtype[np.float32]]

FAMILIES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
SAME_MATRIX = 0.95
"""Mean cosine of rows above which output and embedding are one matrix stored twice (seen: 0.997 to 0.999)."""


def convert(source: Path, target: Path) -> None:
    """Write the model of GGUF file `source` into the existing, empty folder `target`.

    Raises:
        UserError: for a family, a tokenizer or a feature that is not supported.
    """
    file = GGUFFile(source)
    family = file.metadata.get("general.architecture")
    if family not in FAMILIES or "rope_freqs.weight" in file.tensors or f"{family}.rope.scaling.type" in file.metadata:
        known = ", ".join(FAMILIES)
        raise UserError(
            f"{source}: GGUF models of family {family} or with scaled positions are not supported ({known} are); "
            "give the model's folder or name instead"
        )
    config = _config(file, family)
    weights = _weights(file, config)
    config["tie_word_embeddings"] = "lm_head.weight" not in weights
    write_tokenizer(file, target)
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    ends = {"bos_token_id": config["bos_token_id"], "eos_token_id": config["eos_token_id"]}
    (target / "generation_config.json").write_text(json.dumps(ends, indent=2), "utf-8")
    (target / "config.json").write_text(json.dumps(config, indent=2), "utf-8")


def _config(file: GGUFFile, family: str) -> dict[str, Any]:
    def value(key: str, default: Any = None) -> Any:
        return file.metadata.get(f"{family}.{key}", default)

    metadata, heads = file.metadata, value("attention.head_count")
    try:
        config = {
            "architectures": [FAMILIES[family]],
            "model_type": family,
            "hidden_size": value("embedding_length"),
            "intermediate_size": value("feed_forward_length"),
            "num_hidden_layers": value("block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": value("attention.head_count_kv", heads),
            "head_dim": value("attention.key_length", value("embedding_length") // heads),
            "max_position_embeddings": value("context_length"),
            # The file holds a float32: take the shortest decimal that gives it, 1e-05 and not 9.999999747e-06.
            "rms_norm_eps": float(str(np.float32(value("attention.layer_norm_rms_epsilon")))),
            "rope_parameters": {"rope_type": "default", "rope_theta": float(value("rope.freq_base", 10000.0))},
            "vocab_size": file.tensors["token_embd.weight"].shape[0],
            "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
            "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
            "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
            "dtype": "float32",
        }
    except (KeyError, TypeError) as error:
        raise UserError(f"{file.path}: the GGUF metadata lack {error}; this is not a complete chat model") from None
    if family == "qwen2":
        config.pop("head_dim")
    return config


def _weights(file: GGUFFile, config: Mapping[str, Any]) -> dict[str, Array]:
    weights: dict[str, Array] = {}
    for name in file.tensors:
        weight = file.tensor(name)
        if config["model_type"] == "llama" and (found := re.fullmatch(r"blk\.\d+\.attn_([qk])\.weight", name)):
            heads = config["num_attention_heads" if found[1] == "q" else "num_key_value_heads"]
            weight = _rotary_halves(weight, heads)
        weights[_hugging_face_name(file, name)] = weight
    if "lm_head.weight" in weights and _is_same_matrix(weights["model.embed_tokens.weight"], weights["lm_head.weight"]):
        output = weights.pop("lm_head.weight")
        if file.bits_per_weight("output.weight") > file.bits_per_weight("token_embd.weight"):
            weights["model.embed_tokens.weight"] = output
    return weights


def _hugging_face_name(file: GGUFFile, name: str) -> str:
    found = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", name)
    stem = found and (LAYER_NAMES if found[1] else OUTER_NAMES).get(found[2])
    if not found or not stem:
        raise UserError(f"{file.path}: tensor {name} has no place in this family of models; give the model's folder instead")
    return f"model.layers.{found[1]}.{stem}.{found[3]}" if found[1] else f"{stem}.{found[3]}"


def _rotary_halves(weight: Array, heads: int) -> Array:
    """GGUF keeps the two numbers that rotate together side by side, transformers keeps them half a head apart."""
    pairs = weight.reshape(heads, weight.shape[0] // heads // 2, 2, weight.shape[1])
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(weight.shape))


def _is_same_matrix(embedding: Array, output: Array) -> bool:
    sample = slice(None, None, max(1, len(embedding) // 4096))
    one, two = embedding[sample], output[sample]
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    cosine = (one * two).sum(axis=1) / np.maximum(lengths, 1e-12)
    return bool(cosine.mean() > SAME_MATRIX)
