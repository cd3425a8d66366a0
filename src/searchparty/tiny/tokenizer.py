"""The tiny policy's tokenizer: one token for each word of the world's language, syllables for its names, bytes for all else.

Any text encodes and decodes without loss; a text of the language takes few tokens. A fast tokenizer in Hugging Face's form,
with ChatML's control tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from searchparty.errors import missing_package
from searchparty.files import atomic_output, write_json
from searchparty.tiny.language import PIECE, fixed_pieces
from searchparty.world.names import SYLLABLES

try:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
except ImportError as error:
    raise missing_package(error.name or "tokenizers", "train", "the tiny policy") from None

CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
"""Their ids are 0, 1, 2; the last ends a turn, the first fills up."""
CHAT_TEMPLATE = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\\n' }}
{%- endif -%}
"""
_BLANK = "Ġ"
"""How a blank is written in a byte-level vocabulary."""


def build_tokenizer(words: Iterable[str]) -> Tokenizer:
    """The tokenizer whose vocabulary has the given pieces of text (see `language.pieces`) beside those it always has."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    spelling = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    written = ["".join(part for part, _ in spelling.pre_tokenize_str(piece)) for piece in [*fixed_pieces(), *words]]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys([*CONTROL_TOKENS, *alphabet, *written]))}
    # A piece that is in the vocabulary is one token; the merges spell the others: syllables, and the blank before a name.
    merges = [(syllable[0], syllable[1]) for syllable in SYLLABLES] + [(_BLANK, syllable) for syllable in SYLLABLES]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PIECE), "isolated"), spelling])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(CONTROL_TOKENS))
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, context_tokens: int) -> None:
    """Write the tokenizer's files, as transformers reads them, into `folder`, which exists."""
    with atomic_output(folder / "tokenizer.json") as stream:
        stream.write(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, indent=1) + "\n")
    with atomic_output(folder / "chat_template.jinja") as stream:
        stream.write(CHAT_TEMPLATE)
    filler, _, end = CONTROL_TOKENS
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": end,
            "pad_token": filler,
            "clean_up_tokenization_spaces": False,
            "model_max_length": context_tokens,
        },
    )
