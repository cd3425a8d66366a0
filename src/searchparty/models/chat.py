"""Chat rendering as a thing that only ever appends. (interface settled; see ChatFormat)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from searchparty.models.types import Message, Tokenizer


class ChatFormat(Protocol):
    """Renders a conversation piece by piece, so that ids once written are never written again.

    Appending `open(...)`, then for each turn `user(...)`, `begin_action()`, the sampled ids and `end_action(...)` gives, as text,
    exactly what the model's own template prints for the finished conversation.
    """

    name: str
    """Which template this is, recorded with each run."""
    tokenizer: Tokenizer
    end_ids: Sequence[int]
    """Ids any of which ends the model's turn."""
    rewrites_history: bool
    """Whether the model's own template would change earlier turns (drop their thinking). The transcript stays append-only all the
    same; the episode then says so."""

    def open(self, system: str, examples: Sequence[Message] = ()) -> list[int]:
        """Start of the text, system message and worked examples (alternating user and assistant turns, all finished)."""

    def user(self, content: str) -> list[int]:
        """One whole user turn. `content` is encoded as foreign text."""

    def begin_action(self) -> list[int]:
        """What the template prints before the model speaks (the generation prompt)."""

    def end_action(self, ended_by_model: bool) -> list[int]:
        """What the template prints after the model has spoken, up to the next turn.

        Args:
            ended_by_model: the sampled ids already hold the end-of-turn token.
        """
