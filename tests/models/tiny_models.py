"""Small stand-ins for real models, built in a second: tokenizers like those of four families, and random transformers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import torch
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from searchparty.models.chat import PieceChat
from searchparty.models.chat_template import template_chat
from searchparty.models.huggingface_tokenizer import HuggingFaceTokenizer
from searchparty.models.types import Message

DATA = Path(__file__).parent.parent / "data" / "models"

QWEN_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA_WORDS = QWEN_WORDS.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
TRAINING_TEXT = [
    "system user assistant model You are a helpful assistant. What is the capital of France? The answer is Paris.",
    "Hello world, this is a test of a tiny tokenizer;  it has spaces\n\nand line ends.\n<answer>im_start end</answer>",
]

CONTROLS = {
    "smollm": ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<file_sep>"],
    "qwen": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "llama": ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    "gemma": ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"],
}
ADDED = {"qwen": ["<think>", "</think>", "<tool_call>", "</tool_call>"]}
"""Added tokens that the real tokenizers do not mark as special."""


@cache
def backend(family: str) -> Tokenizer:
    """A byte-level BPE tokenizer with the pre-tokenizer, normaliser and control tokens of a family."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=family == "llama"))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=family in ("smollm", "gemma"))
    if family == "smollm":
        first = pre_tokenizers.Digits(individual_digits=True)
    else:
        first = pre_tokenizers.Split(Regex(LLAMA_WORDS if family == "llama" else QWEN_WORDS), "isolated")
    tokenizer.pre_tokenizer = byte_level if family == "gemma" else pre_tokenizers.Sequence([first, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    if family == "qwen":
        tokenizer.normalizer = normalizers.NFC()
    # The control tokens of SmolLM2 are entries of its vocabulary too, those of the others are not.
    special = CONTROLS[family] if family == "smollm" else []
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TRAINING_TEXT, trainer)
    tokenizer.add_special_tokens(CONTROLS[family])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in ADDED.get(family, [])])
    return tokenizer


@cache
def tokenizer(family: str) -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer(backend(family))


def render(template: str, messages: Sequence[Message], generation: bool) -> str:
    """Print a conversation by the template file of that name, in the environment that chat templates expect."""

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = raise_exception
    compiled = environment.from_string((DATA / f"{template}.jinja").read_text("utf-8"))
    bos = {"llama3": "<|begin_of_text|>", "gemma": "<bos>"}.get(template, "")
    turns = [{"role": message.role, "content": message.content} for message in messages]
    return compiled.render(messages=turns, add_generation_prompt=generation, bos_token=bos)


@cache
def chat(template: str, family: str) -> PieceChat:
    return template_chat(template, tokenizer(family), lambda messages, generation: render(template, messages, generation))


def random_model(kind: str = "llama", *, vocabulary: int = 320, seed: int = 0, **changes: object) -> Any:
    """A two-layer causal model with random float32 weights, large enough that its next-token distributions are peaked."""
    torch.manual_seed(seed)
    config_class, model_class = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    }[kind]
    settings: dict[str, object] = {
        "vocab_size": vocabulary, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 512, "initializer_range": 0.3, "tie_word_embeddings": False,
    }  # fmt: skip
    return model_class(config_class(**{**settings, **changes})).eval()
