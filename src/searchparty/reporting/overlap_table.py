"""What the systems of a report were asked and something was trained on: a section of every report, also where nothing is known.

Compares what runs asked, as their directories say it, with the files that recipes or `--trained-on` name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from searchparty.errors import UserError
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.questions.near_copies import RUN
from searchparty.questions.types import Question
from searchparty.reporting.document import Cell, Number, Section, Table
from searchparty.reporting.systems import Gathered
from searchparty.training.overlap import learning_parts, overlap_of
from searchparty.training.playing import StageQuestions

UNKNOWN = (
    "Not known: no training run is part of this report. Name it too, or with --trained-on FILE the questions that the models "
    "were trained on."
)


@dataclass(frozen=True)
class Source:
    """Questions that something learned from, or that systems were asked."""

    names: list[str]
    read: Callable[[], Sequence[Question]]


def overlap_section(found: Gathered, trained_on: Mapping[str, Sequence[Question]] = MappingProxyType({})) -> Section:
    """Every set of questions that was learned from beside every one that was asked; equal sets are compared once."""
    learned, asked = list(_learned(found, trained_on)), _asked(found)
    sentences = [] if learned else [UNKNOWN]
    rows: list[list[Cell]] = []
    for source in learned:
        try:
            questions = source.read()
        except UserError as error:
            sentences += [f"Not known for {', '.join(source.names)}: {line}" for line in error.lines]
            continue
        for test in asked:
            one = overlap_of(", ".join(source.names), questions, ", ".join(test.names), test.read())
            counts = (one.learned, one.asked, one.same_text, one.near_copies, one.same_official_id)
            rows.append([one.learns, one.asks, *(Number(count, 0) for count in counts)])
    columns = (
        "training",
        "evaluations",
        "questions trained on",
        "questions asked",
        "same text",
        "near copies",
        "same official id",
    )
    notes = [
        "Questions asked that are learned from too: the same text folded to letters and digits, or near copies, which share an "
        f"answer and {RUN} words in a row. A development set, by which a checkpoint is chosen, counts as learned from. "
        "Paraphrases, and what a model read before, are not found."
    ]
    tables = [Table("overlap", "Questions in both", columns, rows, notes)] if rows else []
    return Section("Overlap of training and evaluation", sentences, tables)


def _learned(found: Gathered, trained_on: Mapping[str, Sequence[Question]]) -> Iterator[Source]:
    stages = StageQuestions()
    parts: dict[tuple[object, ...], Source] = {}
    for training in found.trainings:
        for name, part in learning_parts(training.recipe):
            source = parts.setdefault(stages.source(part), Source([], lambda part=part: stages.of(part)))  # type: ignore[misc]
            source.names.append(f"{training.title}: {name}")
    yield from parts.values()
    for name, questions in trained_on.items():
        yield Source([name], lambda own=questions: own)  # type: ignore[misc]


def _asked(found: Gathered) -> list[Source]:
    """The questions of all systems, those of one set together."""
    sets: dict[tuple[tuple[str, str], ...], Source] = {}
    for system in found.systems:
        questions = RunDirectory(system.path).read_questions()
        asked = tuple((question.key, question.text) for question in questions)
        sets.setdefault(asked, Source([], lambda own=questions: own)).names.append(system.title)  # type: ignore[misc]
    return list(sets.values())
