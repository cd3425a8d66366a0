"""The tokenizer of a GGUF file as the files of a Hugging Face tokenizer. Knows byte-level BPE vocabularies only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from searchparty.errors import UserError
from searchparty.models.gguf_file import GGUFFile

CONTROL, USER_DEFINED = 3, 4
"""Kinds of tokens in `tokenizer.ggml.token_type` that are matched before the text is split into words."""

_CONTRACTION_OR_WORD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_MARKS_OR_SPACE = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _byte_level(words: bool) -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=words)


def _split(digits: str) -> Any:
    words = Regex(_CONTRACTION_OR_WORD + digits + _MARKS_OR_SPACE)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(words, "isolated"), _byte_level(words=False)])


PRE_TOKENIZERS: Mapping[str, Callable[[], Any]] = {
    "gpt-2": lambda: _byte_level(words=True),
    "smollm": lambda: pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _byte_level(words=True)]),
    "qwen2": lambda: _split(r"\p{N}"),
    "llama-bpe": lambda: _split(r"\p{N}{1,3}"),
}
"""How text is cut into words, by `tokenizer.ggml.pre`."""


def write_tokenizer(file: GGUFFile, target: Path) -> None:
    """Write tokenizer files with the chat template into `target`. Raises UserError for another kind of vocabulary."""
    metadata = file.metadata
    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or pre not in PRE_TOKENIZERS:
        known = ", ".join(PRE_TOKENIZERS)
        raise UserError(
            f"{file.path}: the tokenizer {kind}/{pre} is not supported (byte-level ones are: {known}); "
            "give the model's folder or name instead"
        )
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    kinds: list[int] = metadata["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ", 1)) for merge in metadata["tokenizer.ggml.merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[pre]()
    tokenizer.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    added = [
        AddedToken(token, special=token_kind == CONTROL, normalized=False)
        for token, token_kind in zip(tokens, kinds, strict=True)
        if token_kind in (CONTROL, USER_DEFINED)
    ]
    tokenizer.add_special_tokens([token for token in added if token.special])
    tokenizer.add_tokens([token for token in added if not token.special])

    def named(key: str) -> str | None:
        number = metadata.get(f"tokenizer.ggml.{key}_token_id")
        return None if number is None else tokens[number]

    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=named("bos"),
        eos_token=named("eos"),
        pad_token=named("padding"),
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = metadata.get("tokenizer.chat_template")
    wrapped.save_pretrained(target)
