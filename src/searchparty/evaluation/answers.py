"""Takes the answer out of the turn in which it was given, strictly: one well-formed pair of tags at the end, or no answer.

Knows the text of one turn. It must be given the sampled text of the answering agent's last turn and nothing else, neither the
prompt (which may show an example of the tags) nor passages (which may hold tags of their own); no later step can tell these
apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_TAG = re.compile(r"</?(?:answer|think)>")


class AnswerProblem(StrEnum):
    """Why a turn holds no answer. The list is closed.

    A turn with several faults gets one: unfinished thinking first, then a fault in the order of the tags, then one of what
    stands between and after them.
    """

    UNFINISHED_THINKING = "unfinished_thinking"
    """A `<think>` was never closed: most often the token limit was met while thinking. Tags inside it do not count."""
    MISSING = "missing"
    """No answer tag outside thinking; an empty turn counts here."""
    NESTED = "nested"
    """A further tag, of an answer or of thinking, stands between `<answer>` and its `</answer>`."""
    UNOPENED = "unopened"
    """A `</answer>` without an `<answer>` before it, also where the opening tag is misspelt or has attributes."""
    UNCLOSED = "unclosed"
    """The last `<answer>` has no `</answer>` after it."""
    SEVERAL = "several"
    """More than one pair. None is chosen: taking the last, or the best, would let a model hedge."""
    TRAILING_TEXT = "trailing_text"
    """Something other than white space follows `</answer>`."""
    EMPTY = "empty"
    """Nothing but white space between the tags."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The outcome for one turn: exactly one of the two fields is set."""

    answer: str | None
    """The text between the tags, without white space at its edges, otherwise unchanged; None if there is a problem."""
    problem: AnswerProblem | None


def extract_answer(text: str, *, starts_in_thinking: bool = False) -> Extraction:
    """Read the answer from `text`, the decoded sampled text of the last turn without its end-of-turn token.

    The rules:

    1. The turn ends with one `<answer>…</answer>`; any text may stand before it, only white space after it. Tags are matched to
       the letter: other case, attributes or inner spaces do not make a tag.
    2. Thinking, from `<think>` to the next `</think>`, is set aside with every tag in it. A turn whose first tag of thinking is
       a closing one began inside thinking, because the chat template opened it in the prompt; set `starts_in_thinking` for such
       a template, so that thinking that never ends is seen as well.
    3. Nothing is repaired: no second attempt at looser rules, no unwrapping of markup inside the answer.
    4. An answer may have any length. The token limit of the call bounds it, exact match and F1 already punish excess, and a cap
       would be one more arbitrary number that changes a score.
    """
    tags, thinking_ends = _answer_tags(text, starts_in_thinking)
    if not thinking_ends:
        return Extraction(None, AnswerProblem.UNFINISHED_THINKING)
    shape = "".join(")" if tag.group().startswith("</") else "(" for tag in tags)
    if shape != "()":
        return Extraction(None, _malformed(shape))
    inner = text[tags[0].end() : tags[1].start()]
    if _TAG.search(inner):
        return Extraction(None, AnswerProblem.NESTED)
    if text[tags[1].end() :].strip():
        return Extraction(None, AnswerProblem.TRAILING_TEXT)
    answer = inner.strip()
    return Extraction(answer, None) if answer else Extraction(None, AnswerProblem.EMPTY)


def _answer_tags(text: str, starts_in_thinking: bool) -> tuple[list[re.Match[str]], bool]:
    """The answer tags outside thinking, in order, and whether all thinking was closed."""
    tags = list(_TAG.finditer(text))
    first_of_thinking = next((tag.group() for tag in tags if "think" in tag.group()), "")
    thinking = starts_in_thinking or first_of_thinking == "</think>"
    outside = []
    for tag in tags:
        if tag.group() == "</think>":
            thinking = False
        elif tag.group() == "<think>":
            thinking = True
        elif not thinking:
            outside.append(tag)
    return outside, not thinking


def _malformed(shape: str) -> AnswerProblem:
    """Name the fault of a sequence of `(` for `<answer>` and `)` for `</answer>` that is not a single pair."""
    if not shape:
        return AnswerProblem.MISSING
    if "((" in shape:
        return AnswerProblem.NESTED
    if shape.startswith(")") or "))" in shape:
        return AnswerProblem.UNOPENED
    if shape.endswith("("):
        return AnswerProblem.UNCLOSED
    return AnswerProblem.SEVERAL
