"""A second reading of turns that hold no well-formed answer: how much of what is missing is form?

The rules were fixed before any result was seen and carry a version; a change is a new version. They read the turn and nothing
else: no golden answer comes in here, so that none can steer what is taken. It is reported apart and is never the score.
"""

from __future__ import annotations

import re

RULES = "lenient-1"
"""Version of the rules."""

_THINKING_ENDS = re.compile(r"</think\s*>", re.IGNORECASE)
_OPENED = re.compile(r"<\s*answer\b[^<>]*>", re.IGNORECASE)
_CLOSED = re.compile(r"<\s*/\s*answer\s*>", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_SAID = re.compile(r"(?:\banswer(?:\s+is)?\s*[:：]|\banswer\s+is\b)\s*([^\n]+)", re.IGNORECASE)
_WRAPPED = re.compile(r"^(?:\\boxed\s*\{(.*)\}|\\text\s*\{(.*)\}|\$(.*)\$|\*\*(.*)\*\*|\"(.*)\"|“(.*)”)$", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z_]+[^<>]*>")


def lenient_answer(turn: str) -> str | None:
    """The answer of a turn by the first rule that finds one; None if none does.

    1. What follows the last closing thinking tag is read; the whole turn if there is none, or nothing follows.
    2. The last answer tag, in any case, with spaces or attributes, to its closing tag, the next opening one, or the end.
    3. The last `\\boxed{...}`.
    4. The rest of the last line that says `answer:` or `answer is`, or the next line if nothing follows there.

    A rule that applies ends the search, also if what it finds is empty.

    Other tags, `\\boxed`, `\\text`, `$`, `**` and quotation marks around the whole, and a full stop at the end, are taken off.
    """
    visible = _THINKING_ENDS.split(turn)[-1]
    text = visible if visible.strip() else turn
    opened = list(_OPENED.finditer(text))
    if opened:
        found = _CLOSED.split(text[opened[-1].end() :])[0]
    elif boxed := _BOXED.findall(text):
        found = boxed[-1]
    elif said := _SAID.findall(text):
        found = said[-1]
    else:
        return None
    return _unwrapped(found) or None


def _unwrapped(text: str) -> str:
    text = _TAG.sub(" ", text).strip().removesuffix(".").strip()
    while match := _WRAPPED.match(text):
        inner = next(group for group in match.groups() if group is not None)
        text = inner.strip().removesuffix(".").strip()
    return text
