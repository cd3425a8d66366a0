"""A Hugging Face tokenizer behind our three verbs, with foreign text kept apart from control tokens.

Foreign text goes through a twin of the tokenizer from which all control tokens were taken out. The library's own switch for
this (`encode_special_tokens`) is shared state and leaves added tokens such as `<think>` or `<tool_call>` in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tokenizers import Tokenizer as Backend

from searchparty.models.markup import split_at_controls


class HuggingFaceTokenizer:
    """Wraps a fast tokenizer of the `tokenizers` package; never changed after construction, so threads may share it."""

    def __init__(self, backend: Backend) -> None:
        description = json.loads(backend.to_str())
        vocabulary = description["model"].get("vocab", {})
        unknown = description["model"].get("unk_token")
        kept = [token for token in description["added_tokens"] if _is_plain_space(token, vocabulary)]
        controls = {token["content"]: token["id"] for token in description["added_tokens"] if token not in kept}
        description["added_tokens"] = kept
        description["post_processor"] = None
        self._native = backend
        self._plain = Backend.from_str(json.dumps(description))
        self._controls: Mapping[str, int] = MappingProxyType(controls)
        self._forbidden = frozenset(token_id for text, token_id in controls.items() if text != unknown)

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """See `Tokenizer.control_tokens`. Added runs of white space, as some vocabularies have, are ordinary text."""
        return self._controls

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`. Lone surrogates, which no model vocabulary has, become U+FFFD.

        Raises:
            ValueError: if the vocabulary gives foreign text a control token all the same.
        """
        ids = self._encode_plain(text)
        if self._forbidden.isdisjoint(ids):
            return ids
        # A vocabulary may hold a control token's text as an ordinary entry: cut such texts after their first character.
        ids = []
        for part in split_at_controls(text, self._controls.keys()):
            pieces = (part[:1], part[1:]) if part in self._controls else (part,)
            for piece in pieces:
                ids.extend(self._encode_plain(piece))
        if not self._forbidden.isdisjoint(ids):
            raise ValueError("this tokenizer turns plain text into control tokens; it cannot be used with untrusted text")
        return ids

    def encode_markup(self, text: str) -> list[int]:
        """See `Tokenizer.encode_markup`. No beginning-of-text token is added: a template prints its own."""
        return list(self._native.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`."""
        return str(self._native.decode(list(ids), skip_special_tokens=False))

    def vocabulary(self) -> dict[str, int]:
        """See `Tokenizer.vocabulary`."""
        return dict(self._native.get_vocab(with_added_tokens=True))

    def _encode_plain(self, text: str) -> list[int]:
        try:
            return list(self._plain.encode(text, add_special_tokens=False).ids)
        except (UnicodeEncodeError, TypeError):
            valid = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return list(self._plain.encode(valid, add_special_tokens=False).ids)


def _is_plain_space(token: dict[str, Any], vocabulary: object) -> bool:
    return (
        not token["special"]
        and token["content"].isspace()
        and isinstance(vocabulary, dict)
        and vocabulary.get(token["content"]) == token["id"]
    )
