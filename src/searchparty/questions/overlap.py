"""Finds questions that stand in two files, or twice in one, even where case, punctuation or the encoding of accents differ.

Knows questions only, not files. A shared text is not always a fault: two people share a name, and so two questions their text.
Each group therefore says how the golden answers of its members agree.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, product

from searchparty.questions.types import Question

_ASCII_JUNK = re.compile(r"[^0-9a-z]+")


def fold(text: str) -> str:
    """The text's letters and digits alone, compatibility forms (NFKC) and case folded."""
    if text.isascii():
        return _ASCII_JUNK.sub("", text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(character for character in folded if character.isalnum())


class Agreement(StrEnum):
    """How the folded golden answers of two questions agree."""

    SAME = "same"
    """The same set."""
    PARTIAL = "partial"
    """Some answers are accepted by both, some by one alone."""
    CONFLICT = "conflict"
    """No answer is accepted by both."""
    UNKNOWN = "unknown"
    """One of the two has no golden answers."""


def agreement(first: Question, second: Question) -> Agreement:
    """Compare the golden answers. An answer without letters and digits is compared as it is."""
    one, other = ({fold(answer) or answer for answer in question.golden_answers} for question in (first, second))
    if not one or not other:
        return Agreement.UNKNOWN
    if one == other:
        return Agreement.SAME
    return Agreement.PARTIAL if one & other else Agreement.CONFLICT


_GRAVITY = (Agreement.SAME, Agreement.UNKNOWN, Agreement.PARTIAL, Agreement.CONFLICT)


@dataclass(frozen=True, slots=True)
class Group:
    """Questions with one folded text."""

    text: str
    """As the first of them writes it."""
    first: tuple[str, ...]
    """Their keys in the first file."""
    second: tuple[str, ...]
    """Their keys in the second file; empty when one file is compared with itself."""
    answers: Agreement
    """The gravest disagreement among its pairs: conflict, then partial, then unknown, then same."""

    @property
    def pairs(self) -> int:
        """Number of pairs of questions: across the files if there are two, within the file if there is one."""
        return len(self.first) * len(self.second) if self.second else len(self.first) * (len(self.first) - 1) // 2


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two files share, or one file repeats."""

    sizes: tuple[int, ...]
    """Questions in each of the files that were compared."""
    groups: tuple[Group, ...]
    """Shared texts, in the order of the first file."""
    same_key: tuple[str, ...]
    """Keys that stand in both files; within one file keys are unique."""
    same_key_other_text: tuple[str, ...]
    """Those of them under which the files hold different questions, as happens where ids are row numbers."""
    same_official_id: tuple[str, ...]
    """`dataset/official id` that several questions carry, at least one of them beside an id of its own."""

    @property
    def pairs(self) -> int:
        """Number of pairs of questions with a shared text."""
        return sum(group.pairs for group in self.groups)

    def count(self, answers: Agreement) -> int:
        """Number of groups whose golden answers agree in this way."""
        return sum(group.answers is answers for group in self.groups)


def shared_with(first: Sequence[Question], second: Sequence[Question]) -> tuple[str, ...]:
    """Keys of the first that are questions of the second too: by folded text, or by an official id that one of them states.

    Equal keys of other texts are not the same question, and so not among them.
    """
    overlap = find_overlap(first, second)
    officials = set(overlap.same_official_id)
    same = {key for group in overlap.groups for key in group.first}
    return tuple(one.key for one in first if one.key in same or _official_id(one) in officials)


def find_overlap(first: Sequence[Question], second: Sequence[Question] | None = None) -> Overlap:
    """Compare two files, or one with itself. Time grows with the number of questions, not of their pairs."""
    texts = _by(first, _folded_text)
    officials = _by(first, _official_id)
    if second is None:
        groups = [
            Group(members[0].text, _keys(members), (), _gravest(combinations(_distinct(members), 2)))
            for members in texts.values()
            if len(members) > 1
        ]
        repeated = (name for name, members in officials.items() if len(members) > 1 and _stated(members))
        return Overlap((len(first),), tuple(groups), (), (), tuple(repeated))
    other_texts = _by(second, _folded_text)
    groups = [
        Group(members[0].text, _keys(members), _keys(others), _gravest(product(_distinct(members), _distinct(others))))
        for text, members in texts.items()
        if (others := other_texts.get(text))
    ]
    by_key = {question.key: question for question in second}
    same_key = [question for question in first if question.key in by_key]
    other_text = (question for question in same_key if _folded_text(question) != _folded_text(by_key[question.key]))
    other_officials = _by(second, _official_id)
    same_official = (
        name for name, members in officials.items() if (others := other_officials.get(name)) and _stated(members + others)
    )
    return Overlap((len(first), len(second)), tuple(groups), _keys(same_key), _keys(other_text), tuple(same_official))


def _folded_text(question: Question) -> str:
    return fold(question.text)


def _official_id(question: Question) -> str:
    return f"{question.dataset}/{question.official_id or question.id}"


def _stated(questions: Iterable[Question]) -> bool:
    """Whether some question states an official id; without that, equal ids may be nothing but equal row numbers."""
    return any(question.official_id is not None for question in questions)


def _by(questions: Iterable[Question], name: Callable[[Question], str]) -> dict[str, list[Question]]:
    """Questions by name, in their order; a text that folds to nothing is comparable with none and is left out."""
    found: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        found[name(question)].append(question)
    found.pop("", None)
    return dict(found)


def _keys(questions: Iterable[Question]) -> tuple[str, ...]:
    return tuple(question.key for question in questions)


def _distinct(questions: Iterable[Question]) -> list[Question]:
    """One question for each set of golden answers, two for a set that occurs more often: enough to see every kind of pair."""
    kept: dict[frozenset[str], list[Question]] = defaultdict(list)
    for question in questions:
        same = kept[frozenset(question.golden_answers)]
        if len(same) < 2:
            same.append(question)
    return [question for same in kept.values() for question in same]


def _gravest(pairs: Iterable[tuple[Question, Question]]) -> Agreement:
    return max((agreement(one, other) for one, other in pairs), key=_GRAVITY.index)
