"""Chat rendering as a thing that only ever appends.

Knows the pieces of one chat template and a tokenizer; does not know where the pieces came from, nor any model, team or tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from searchparty.models.markup import split_at_controls
from searchparty.models.types import Message, Tokenizer


class ChatFormat(Protocol):
    """Renders a conversation piece by piece, so that ids once written are never written again.

    Appending `open(...)`, then for each turn `user(...)`, `begin_action()`, the sampled ids and `end_action(...)` gives, as
    text, exactly what the model's own template prints for the finished conversation.
    """

    name: str
    """Which template this is, recorded with each run."""
    tokenizer: Tokenizer
    end_ids: Sequence[int]
    """Ids any of which ends the model's turn; the first is the one that the template itself prints."""
    rewrites_history: bool
    """Whether the model's own template would change earlier turns (drop their thinking). The transcript stays append-only all
    the same; the episode then says so."""
    opens_thinking: bool
    """Whether the generation prompt ends with `<think>`, so that the model's turn begins inside its thinking."""

    def open(self, system: str, examples: Sequence[Message] = ()) -> list[int]:
        """Start of the text, system message and worked examples (alternating user and assistant turns, all finished).

        An empty `system` means no system message: the template's default, if it has one, is then printed.
        """

    def user(self, content: str, *, first: bool = False) -> list[int]:
        """One whole user turn. `content` is encoded as foreign text.

        Args:
            first: this turn follows `open` without examples. It matters only for templates that print the system message
                inside the first user turn, which `open` has then begun.
        """

    def begin_action(self) -> list[int]:
        """What the template prints before the model speaks (the generation prompt)."""

    def end_action(self, ended_by_model: bool) -> list[int]:
        """What the template prints after the model has spoken, up to the next turn.

        Args:
            ended_by_model: the sampled ids already hold the end-of-turn token.
        """


@dataclass(frozen=True, slots=True)
class Turn:
    """What a template prints around the content of one kind of turn, and whether it strips that content's ends."""

    before: str
    after: str
    strip_left: bool = False
    strip_right: bool = False

    def strip(self, content: str) -> str:
        """`content` as the template would print it."""
        content = content.lstrip() if self.strip_left else content
        return content.rstrip() if self.strip_right else content


@dataclass(frozen=True, slots=True)
class _Frame:
    """A turn's markup, encoded as far as no content can change it: ids, text that touches the content, and ids again."""

    before: list[int]
    left: str
    right: str
    after: list[int]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A chat template, taken apart. All strings are the template's own markup, control tokens included."""

    system: Turn
    """Starts the text: `before` holds the beginning-of-text token if the template prints one."""
    no_system: str
    """What starts the text of a conversation without a system message: often a default one."""
    user: Turn
    assistant: Turn
    """A finished model turn in the history (a worked example)."""
    generation_prompt: str
    end_of_turn: str
    """The control token that the model samples to end its turn; the beginning of `assistant.after`."""
    system_in_first_user: bool = False
    """The system message stands inside the first user turn, whose own `before` is then part of `system.before`."""


class PieceChat:
    """A `ChatFormat` made of pieces.

    Markup next to a content is encoded together with it (control tokens cut the text first, as in every tokenizer), so the ids
    are those of the whole conversation tokenised at once, for any content that names no control token.
    """

    def __init__(
        self,
        name: str,
        tokenizer: Tokenizer,
        pieces: Pieces,
        *,
        other_end_ids: Sequence[int] = (),
        rewrites_history: bool = False,
    ) -> None:
        """`other_end_ids` are ids beside the template's own end-of-turn token that end a turn (end of text)."""
        self.name = name
        self.tokenizer = tokenizer
        self.pieces = pieces
        self.rewrites_history = rewrites_history
        self.opens_thinking = pieces.generation_prompt.rstrip().endswith("<think>")
        end_id = tokenizer.control_tokens[pieces.end_of_turn]
        self.end_ids: Sequence[int] = (end_id, *sorted(set(other_end_ids) - {end_id}))
        self._frames: dict[Turn, _Frame] = {}
        self._begin_action = tokenizer.encode_markup(pieces.generation_prompt)
        self._end_action = {
            True: tokenizer.encode_markup(pieces.assistant.after.removeprefix(pieces.end_of_turn)),
            False: tokenizer.encode_markup(pieces.assistant.after),
        }

    def open(self, system: str, examples: Sequence[Message] = ()) -> list[int]:
        """See `ChatFormat.open`."""
        pieces = self.pieces
        ids = self._turn(pieces.system, system) if system else self.tokenizer.encode_markup(pieces.no_system)
        if not system and not examples and pieces.system_in_first_user:
            ids += self.tokenizer.encode_markup(pieces.user.before)
        for place, message in enumerate(examples):
            if message.role == "user":
                ids += self._user(message.content, inside_system=bool(system) and place == 0)
            else:
                ids += self._turn(pieces.assistant, message.content)
        return ids

    def user(self, content: str, *, first: bool = False) -> list[int]:
        """See `ChatFormat.user`."""
        return self._user(content, inside_system=first)

    def begin_action(self) -> list[int]:
        """See `ChatFormat.begin_action`."""
        return list(self._begin_action)

    def end_action(self, ended_by_model: bool) -> list[int]:
        """See `ChatFormat.end_action`."""
        return list(self._end_action[ended_by_model])

    def _user(self, content: str, inside_system: bool) -> list[int]:
        turn = self.pieces.user
        if inside_system and self.pieces.system_in_first_user:
            turn = Turn("", turn.after, turn.strip_left, turn.strip_right)
        return self._turn(turn, content)

    def _turn(self, turn: Turn, content: str) -> list[int]:
        """Ids of one turn: the plain text that touches the content goes through the tokenizer in one piece with it."""
        frame = self._frames.get(turn)
        if frame is None:
            frame = self._frames[turn] = self._frame(turn)
        return [*frame.before, *self.tokenizer.encode(frame.left + turn.strip(content) + frame.right), *frame.after]

    def _frame(self, turn: Turn) -> _Frame:
        controls = self.tokenizer.control_tokens.keys()
        *before, left = split_at_controls(turn.before, controls)
        right, *after = split_at_controls(turn.after, controls)
        encode = self.tokenizer.encode_markup
        return _Frame(encode("".join(before)), left, right, encode("".join(after)))
