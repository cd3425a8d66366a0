"""Text that any tokenizer takes."""

from __future__ import annotations


def encodable(text: str) -> str:
    """The text with each half of a surrogate pair, which JSON can carry and tokenizers refuse, as a question mark."""
    return text.encode("utf-8", "replace").decode()
