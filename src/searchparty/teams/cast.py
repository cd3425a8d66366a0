"""Who plays what: for every role of a team its model, its prompt and how its tokens are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from searchparty.models.loading import Model
from searchparty.models.types import Message, Sampling
from searchparty.teams.prompts import Prompt


@dataclass(frozen=True, slots=True)
class Opening:
    """System message and worked examples: as messages, as token ids (None for a model that exchanges text), and to read.

    All histories share it, so nobody changes it.
    """

    messages: tuple[Message, ...]
    ids: list[int] | None
    text: str


@dataclass(frozen=True)
class Part:
    """One role's part. Roles may share a model; they then share its weights and its batches."""

    model: Model
    prompt: Prompt
    sampling: Sampling

    @cached_property
    def opening(self) -> Opening:
        """The beginning of every history of this role, the same in all episodes and rendered once."""
        system = [Message("system", self.prompt.system)] if self.prompt.system else []
        messages = (*system, *self.prompt.examples)
        chat = self.model.chat
        ids = None if chat is None else chat.open(self.prompt.system, self.prompt.examples)
        text = "\n\n".join(f"[{message.role}] {message.content}" for message in messages)
        return Opening(messages, ids, text)


Cast = Mapping[str, Part]
"""Role to part. A team finds every one of its roles in it."""
