"""Reading an agent's turn: which action did it take, or what exactly is wrong with it.

Only sampled text of one turn comes in here, never passages, prompts or earlier turns. The rules are the same for every role: a
turn may think aloud first, and must end with its action in tags; nothing is repaired and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class ActionProblem(StrEnum):
    """Why a turn holds no well-formed action. The list is closed; format failures are counted by these kinds."""

    EMPTY_TURN = "empty_turn"
    """Nothing but white space."""
    NO_TAG = "no_tag"
    """None of the tags that the role may use now."""
    UNCLOSED = "unclosed"
    """A tag is opened and never closed."""
    STRAY_TAG = "stray_tag"
    """A closing tag without an opening one, or a tag inside another."""
    SEVERAL_ACTIONS = "several_actions"
    """More than one action where one is allowed, or actions of different kinds."""
    EMPTY_CONTENT = "empty_content"
    """Nothing between the tags."""
    TRAILING_TEXT = "trailing_text"
    """Text after the action."""
    NOT_ALLOWED_NOW = "not_allowed_now"
    """A tag of the role that it may not use in this turn, such as a search after it was told to report."""
    BAD_CONTENT = "bad_content"
    """The content does not have the form that the tag asks for, such as a report number that does not exist."""


@dataclass(frozen=True, slots=True)
class Action:
    """A well-formed action: its tag and the stripped contents, one per pair of tags."""

    tag: str
    contents: tuple[str, ...]

    @property
    def content(self) -> str:
        """The content of an action that has just one."""
        return self.contents[0]


@dataclass(frozen=True, slots=True)
class TagRules:
    """Which tags a role may write.

    Attributes:
        allowed: tags that are legal in this turn.
        repeatable: those of them of which one turn may hold several.
        known: all tags of the role; one that is known but not allowed is a problem of its own.
    """

    allowed: tuple[str, ...]
    repeatable: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)


def read_action(text: str, rules: TagRules) -> Action | ActionProblem:
    """Parse one turn. Tags are lower case without attributes; a `<think>…</think>` block is skipped, whatever it holds.

    Well-formed is: any text without the role's tags, then one action (or several of one repeatable tag, with white space between),
    then nothing. Tags of other roles are ordinary text.
    """
    body = _THINKING.sub("", text)
    if not body.strip():
        return ActionProblem.EMPTY_TURN
    if "<think>" in body:
        return ActionProblem.UNCLOSED
    tags = dict.fromkeys((*rules.allowed, *rules.known))
    pieces = list(re.finditer(rf"<(/?)({'|'.join(map(re.escape, tags))})>", body))
    if not pieces:
        return ActionProblem.NO_TAG
    contents: list[str] = []
    used: list[str] = []
    end_of_last: int | None = None
    position = 0
    while position < len(pieces):
        opening = pieces[position]
        if opening[1]:
            return ActionProblem.STRAY_TAG
        if position + 1 == len(pieces):
            return ActionProblem.UNCLOSED
        closing = pieces[position + 1]
        if not closing[1] or closing[2] != opening[2]:
            return ActionProblem.STRAY_TAG
        if end_of_last is not None and body[end_of_last : opening.start()].strip():
            return ActionProblem.TRAILING_TEXT
        used.append(opening[2])
        contents.append(body[opening.end() : closing.start()].strip())
        end_of_last = closing.end()
        position += 2
    if body[end_of_last:].strip():
        return ActionProblem.TRAILING_TEXT
    return _judge(used, contents, rules)


def _judge(used: list[str], contents: list[str], rules: TagRules) -> Action | ActionProblem:
    if len(set(used)) > 1 or (len(used) > 1 and used[0] not in rules.repeatable):
        return ActionProblem.SEVERAL_ACTIONS
    if used[0] not in rules.allowed:
        return ActionProblem.NOT_ALLOWED_NOW
    if not all(contents):
        return ActionProblem.EMPTY_CONTENT
    return Action(used[0], tuple(contents))


def closing_tags(tags: Collection[str]) -> tuple[str, ...]:
    """Stop strings that end a turn at its action, for roles that may write just one."""
    return tuple(f"</{tag}>" for tag in tags)
