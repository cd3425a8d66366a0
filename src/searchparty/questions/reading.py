"""From a file of any known format to questions.

Knows containers and the registry of formats; what a format looks like inside is the business of `formats`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from searchparty.errors import UserError
from searchparty.questions.containers import Container, Placed, TableLayout, container_of, read_objects, read_rows, read_table
from searchparty.questions.dataset_names import dataset_in_path
from searchparty.questions.formats import FORMATS
from searchparty.questions.formats.base import Format, HoldsNoQuestion
from searchparty.questions.not_questions import other_object, other_row
from searchparty.questions.records import Naming, Record
from searchparty.questions.types import Question


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that gave no question: it repeats an earlier one, or is something else in a collection."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file held. Every record is either among the questions or among the skipped."""

    questions: list[Question]
    format: str
    """Name of the format, found or forced."""
    skipped: list[Skipped]


def read_questions(path: Path, format: str | None = None, dataset: str | None = None) -> list[Question]:
    """Read all questions of a file, plain or gzip-compressed.

    Args:
        path: the file; its format is found by its content.
        format: a name from `FORMATS` to force one.
        dataset: the dataset's name for all records, whatever the data say.

    Raises:
        UserError: unknown format, a malformed record (with its line), no records, two unlike records with one key (with both
            lines; in the native format also two alike).
    """
    return load_questions(path, format, dataset).questions


def load_questions(path: Path, format: str | None = None, dataset: str | None = None, limit: int | None = None) -> Loaded:
    """Read a file, and say also which format it was and which records gave no question.

    With `limit`, reading ends after that many questions and later records are not looked at. Otherwise as `read_questions`.
    """
    container = container_of(path)
    form = _format_named(path, format) if format else find_format(path, container)
    naming = Naming(
        override=dataset,
        in_path=None if form.dataset else dataset_in_path(path),
        default=form.dataset or form.usual_dataset or form.name,
    )
    loaded = Loaded([], form.name, [])
    seen: dict[str, tuple[str, Question]] = {}
    for number, (where, fields) in enumerate(_records(path, container, form)):
        record = Record(where, number, fields, naming)
        try:
            for question in form.questions(record):
                if question.key not in seen:
                    seen[question.key] = where, question
                    loaded.questions.append(question)
                    continue
                first_where, first = seen[question.key]
                earlier = f"{question.key} stands already at {first_where.removeprefix(f'{path}:').strip()}"
                if not (form.repeats_allowed and first == question and first.extra == question.extra):
                    raise record.fault(f"{earlier}; give each record its own id")
                loaded.skipped.append(Skipped(where, f"{earlier} with the same content"))
        except HoldsNoQuestion as reason:
            loaded.skipped.append(Skipped(where, str(reason)))
        if limit is not None and len(loaded.questions) >= limit:
            del loaded.questions[limit:]
            break
    if not loaded.questions:
        raise UserError(f"{path}: no record of it holds a question; check the file, or name its format with --format")
    return loaded


def find_format(path: Path, container: Container) -> Format:
    """The first format whose content test the first record passes.

    Raises:
        UserError: if none does; the message says what the file is instead, where that can be told, or lists the formats.
    """
    if container is Container.TEXT:
        _, cells = next(read_rows(path, _TABS))
        seen = other_row(path, cells)
        found = None if seen else next((form for form in FORMATS.values() if _fits_first_row(path, form)), None)
        content = container.value
    else:
        _, fields = next(read_objects(path, container))
        seen = other_object(path, fields)
        found = None if seen else next((form for form in FORMATS.values() if form.matches(fields)), None)
        content = f"{container.value} with the fields {', '.join(list(fields)[:8]) or '(none)'}"
    if found is not None:
        return found
    raise UserError(f"{path}: {seen or f'unknown format ({content}); force one with --format: ' + ', '.join(FORMATS)}")


_TABS = TableLayout("\t", quoted=False, columns=None)


def _fits_first_row(path: Path, form: Format) -> bool:
    if form.table is None:
        return False
    try:
        first = next(read_table(path, form.table), None)
    except UserError:
        return False
    return first is not None and form.matches(first[1])


def _format_named(path: Path, name: str) -> Format:
    if name in FORMATS:
        return FORMATS[name]
    near = difflib.get_close_matches(name, FORMATS, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UserError(f"{path}: unknown format {name!r}; {hint}known formats: {', '.join(FORMATS)}")


def _records(path: Path, container: Container, form: Format) -> Iterator[Placed]:
    if container is not Container.TEXT:
        return read_objects(path, container)
    if form.table is None:
        raise UserError(f"{path}: the format {form.name} is never {container}; leave --format out to have it found by content")
    return read_table(path, form.table)
