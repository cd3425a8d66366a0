"""How passages and reports are written down for a model to read."""

from __future__ import annotations

from collections.abc import Sequence

from searchparty.retrieval.types import Hit


def format_passages(hits: Sequence[Hit], max_characters: int) -> str:
    """Passages as numbered paragraphs, or a sentence that says that nothing was found.

    Args:
        max_characters: a longer passage text is cut there, visibly.
    """
    if not hits:
        return "No passage was found."
    return "\n".join(f"Passage {hit.rank}: {hit.passage.title}\n{clip(hit.passage.text, max_characters)}" for hit in hits)


def clip(text: str, max_characters: int) -> str:
    """Cut a text at a character limit and mark the cut."""
    text = text.strip()
    return text if len(text) <= max_characters else text[:max_characters].rstrip() + " […]"
