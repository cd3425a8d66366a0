"""Reading an agent's turn: which action did it take, or what exactly is wrong with it.

Only the sampled text of one turn comes in here, never passages, prompts or earlier turns. The rules are the same for every
role: a turn may think aloud first and must end with its action in tags. Nothing is repaired and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class ActionProblem(StrEnum):
    """Why a turn holds no well-formed action. The list is closed; format failures are counted by these kinds."""

    EMPTY_TURN = "empty_turn"
    """Nothing but white space."""
    UNFINISHED_THINKING = "unfinished_thinking"
    """A `<think>` was never closed: most often the token limit was met while thinking. Tags inside it do not count."""
    NO_TAG = "no_tag"
    """None of the role's tags outside thinking."""
    NESTED = "nested"
    """A tag, of an action or of thinking, stands between another's opening and closing."""
    UNOPENED = "unopened"
    """A closing tag without its opening one, also where the opening tag is misspelt or has attributes."""
    UNCLOSED = "unclosed"
    """The last tag is opened and never closed."""
    SEVERAL = "several"
    """More than one action where one is allowed, or actions of different kinds. None is chosen: that would let a model
    hedge."""
    EMPTY_CONTENT = "empty_content"
    """Nothing but white space between the tags."""
    TRAILING_TEXT = "trailing_text"
    """Something other than white space follows the action, or stands between the parts of one."""
    NOT_ALLOWED_NOW = "not_allowed_now"
    """A tag that the role may not use in this turn, such as a search after it was told to report."""
    CONTEXT_FULL = "context_full"
    """There was no turn: the history leaves no room in the model's window."""
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
        repeatable: those of which one turn may hold several.
        known: all tags of the role; one that is known but not allowed is a problem of its own.
    """

    allowed: tuple[str, ...]
    repeatable: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


def read_action(text: str, rules: TagRules, *, starts_in_thinking: bool = False) -> Action | ActionProblem:
    """Parse one turn.

    1. The turn ends with one action, or with several pairs of one repeatable tag and only white space between them. Any text
       may stand before it, only white space after it. Tags are matched to the letter: other case, attributes or spaces make no
       tag.
    2. Thinking, from `<think>` to the next `</think>`, is set aside with every tag in it. A turn whose first thinking tag is a
       closing one began inside thinking, because the chat template opened it in the prompt; set `starts_in_thinking` for such a
       template, so that thinking that never ends is seen as well.
    3. Tags of other roles are ordinary text, and content may have any length; the call's token limit bounds it.
    """
    if not text.strip():
        return ActionProblem.EMPTY_TURN
    tags, finished_thinking = _tags_outside_thinking(text, dict.fromkeys((*rules.allowed, *rules.known)), starts_in_thinking)
    if not finished_thinking:
        return ActionProblem.UNFINISHED_THINKING
    fault = _malformed(tags)
    if fault is not None:
        return fault
    pairs = list(zip(tags[::2], tags[1::2], strict=True))
    gaps = [text[closing.end() : opening.start()] for (_, closing), (opening, _) in pairwise(pairs)]
    name = pairs[0][0][2]
    if any(opening[2] != name for opening, _ in pairs) or (len(pairs) > 1 and name not in rules.repeatable):
        return ActionProblem.SEVERAL
    if any(gap.strip() for gap in gaps) or text[pairs[-1][1].end() :].strip():
        return ActionProblem.TRAILING_TEXT
    if name not in rules.allowed:
        return ActionProblem.NOT_ALLOWED_NOW
    contents = tuple(text[opening.end() : closing.start()].strip() for opening, closing in pairs)
    if any("<think>" in content or "</think>" in content for content in contents):
        return ActionProblem.NESTED
    return Action(name, contents) if all(contents) else ActionProblem.EMPTY_CONTENT


def closing_tags(tags: Collection[str]) -> tuple[str, ...]:
    """Stop strings that end a turn at its action, for tags of which a turn may hold just one."""
    return tuple(f"</{tag}>" for tag in tags)


def _tags_outside_thinking(text: str, names: Collection[str], starts_in_thinking: bool) -> tuple[list[re.Match[str]], bool]:
    """The tags in order, and whether all thinking was closed."""
    found = list(re.finditer(rf"<(/?)(think|{'|'.join(map(re.escape, names))})>", text))
    thinking = starts_in_thinking or next((tag[1] == "/" for tag in found if tag[2] == "think"), False)
    outside = []
    for tag in found:
        if tag[2] == "think":
            thinking = not tag[1]
        elif not thinking:
            outside.append(tag)
    return outside, not thinking


def _malformed(tags: list[re.Match[str]]) -> ActionProblem | None:
    """Name the fault of a sequence of tags that is not made of whole pairs."""
    if not tags:
        return ActionProblem.NO_TAG
    is_open: str | None = None
    for tag in tags:
        if not tag[1]:
            if is_open is not None:
                return ActionProblem.NESTED
            is_open = tag[2]
        elif tag[2] != is_open:
            return ActionProblem.UNOPENED
        else:
            is_open = None
    return ActionProblem.UNCLOSED if is_open is not None else None
