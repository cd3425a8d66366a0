"""A tokenizer without a vocabulary: every UTF-8 byte is one token, control tokens lie above 255.

For scripted engines and tests, so that their episodes are token-exact too. Knows no chat template and no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from searchparty.models.markup import encode_around_controls

CONTROL_TOKENS: Mapping[str, int] = MappingProxyType({"<|endoftext|>": 256, "<|im_start|>": 257, "<|im_end|>": 258})
_NAMES = {token_id: name.encode() for name, token_id in CONTROL_TOKENS.items()}
_SINGLE_BYTES = [bytes([value]) for value in range(256)]


class ByteTokenizer:
    """Bytes as ids. `decode(encode(text)) == text` for every string, lone surrogates included."""

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Text and id of every control token."""
        return CONTROL_TOKENS

    def encode(self, text: str) -> list[int]:
        """The UTF-8 bytes of `text`, all below 256: no text becomes a control token."""
        return list(text.encode("utf-8", "surrogatepass"))

    def encode_markup(self, text: str) -> list[int]:
        """As `encode`, but the names of control tokens become their ids."""
        return encode_around_controls(text, CONTROL_TOKENS, self.encode)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; bytes that are not UTF-8 (a span cut inside a character) become U+FFFD.

        Raises:
            ValueError: for an id outside the vocabulary.
        """
        try:
            raw = bytes(ids)
        except ValueError:
            raw = b"".join([_SINGLE_BYTES[i] if 0 <= i < 256 else _name(i) for i in ids])
        try:
            return raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return raw.decode("utf-8", "replace")

    def vocabulary(self) -> Mapping[str, int]:
        """Every byte as `0x41`, and the control tokens."""
        return {**{f"0x{value:02x}": value for value in range(256)}, **CONTROL_TOKENS}


def _name(token_id: int) -> bytes:
    if token_id not in _NAMES:
        raise ValueError(f"{token_id} is not an id of the byte tokenizer (0 to {max(_NAMES)})")
    return _NAMES[token_id]
