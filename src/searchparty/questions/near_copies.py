"""Finds questions of two files that are nearly the same: they share an answer and a long run of words.

A shared answer alone says little, and so does a shared phrase such as `what is the name of the`; both together are most often
one fact asked in two ways. Knows questions only, not files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from searchparty.questions.overlap import fold
from searchparty.questions.types import Question

RUN = 8
"""Words of a run that two questions must share, the length at which contamination is usually looked for."""
_SAYING_LITTLE = {"", "yes", "no"}
"""Answers that two questions of one template share by chance."""


@dataclass(frozen=True, slots=True)
class NearCopy:
    """Two questions with other texts that share an answer and a run of words."""

    first: str
    """Key in the first file."""
    second: str
    """Key in the second file."""
    answer: str
    """Folded."""
    words: str
    """The first run of words that both have, folded."""


def find_near_copies(first: Sequence[Question], second: Sequence[Question], run: int = RUN) -> tuple[NearCopy, ...]:
    """Pairs that share an accepted answer and `run` words in a row, and whose folded texts differ; one entry a pair.

    Questions of fewer words, and those without golden answers or with yes or no alone, have none. Time grows with the number of
    words times answers, and with the number of pairs found.
    """
    places: dict[tuple[tuple[str, ...], str], list[Question]] = defaultdict(list)
    for question in first:
        for words, answer in _facts(question, run):
            places[words, answer].append(question)
    found: dict[tuple[str, str], NearCopy] = {}
    for question in second:
        text = fold(question.text)
        for words, answer in _facts(question, run):
            for other in places.get((words, answer), ()):
                if (other.key, question.key) not in found and fold(other.text) != text:
                    found[other.key, question.key] = NearCopy(other.key, question.key, answer, " ".join(words))
    return tuple(found.values())


def _facts(question: Question, run: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every run of words with every answer, each pair once, answers of one run in their order."""
    return product(dict.fromkeys(_runs(question, run)), sorted(_answers(question)))


def _runs(question: Question, run: int) -> Iterator[tuple[str, ...]]:
    words = [folded for word in question.text.split() if (folded := fold(word))]
    return (tuple(words[start : start + run]) for start in range(len(words) - run + 1))


def _answers(question: Question) -> set[str]:
    return {fold(answer) for answer in question.golden_answers} - _SAYING_LITTLE
