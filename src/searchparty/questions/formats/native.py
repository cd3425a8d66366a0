"""searchparty's own format: one JSON object a line, its keys those of `Question`, except that `text` is called `question`.

Unknown keys are kept in `extra` and written back under the key `extra`, so that no name of a source can collide with ours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from searchparty.errors import UserError
from searchparty.files import atomic_output
from searchparty.questions.formats.base import Fields, Format
from searchparty.questions.records import Record
from searchparty.questions.types import Question

REQUIRED = ("id", "dataset", "question", "golden_answers")
OPTIONAL = ("supporting_titles", "supporting_ids", "hops", "type", "split", "source", "official_id")


def matches(fields: Fields) -> bool:
    """All required keys are there, and none of the verl columns that Search-R1's files have beside them."""
    return all(key in fields for key in REQUIRED) and "reward_model" not in fields


def read(record: Record) -> Question:
    """Read one line. `golden_answers` must be a list; an empty one says that the source gives no answer."""
    if not isinstance(record.fields.get("golden_answers"), list):
        raise record.fault("the field 'golden_answers' must hold a list of texts (an empty one if there are none)")
    hops = record.fields.get("hops")
    if hops is not None and (isinstance(hops, bool) or not isinstance(hops, int)):
        raise record.fault(f"the field 'hops' must hold a whole number or null, found {hops!r}")
    extra = record.fields.get("extra")
    if extra is not None and not isinstance(extra, dict):
        raise record.fault("the field 'extra' must hold an object")
    if record.identifier("id") is None:
        raise record.fault("the field 'id' must hold an id (text or a whole number), found nothing")
    question = record.question(
        text=record.text("question"),
        golden_answers=record.strings("golden_answers"),
        record_id=record.identifier("id"),
        dataset=record.text("dataset"),
        used=(*REQUIRED, *OPTIONAL, "extra"),
        supporting_titles=record.strings("supporting_titles"),
        supporting_ids=record.strings("supporting_ids"),
        hops=hops,
        type=record.optional_text("type"),
        split=record.optional_text("split"),
        source=record.optional_text("source"),
        official_id=record.identifier("official_id"),
    )
    question.extra.update(extra or {})
    return question


def to_object(question: Question) -> dict[str, object]:
    """The JSON object of one question; `extra` only where there is any."""
    fields: dict[str, object] = {
        "id": question.id,
        "dataset": question.dataset,
        "question": question.text,
        "golden_answers": list(question.golden_answers),
        "supporting_titles": list(question.supporting_titles),
        "supporting_ids": list(question.supporting_ids),
        "hops": question.hops,
        "type": question.type,
        "split": question.split,
        "source": question.source,
        "official_id": question.official_id,
    }
    if question.extra:
        fields["extra"] = question.extra
    return fields


def to_line(question: Question) -> str:
    """The question as one line of JSON, without the line end."""
    line = json.dumps(to_object(question), ensure_ascii=False, default=str)
    try:
        line.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 cannot hold but a JSON escape can
        return json.dumps(to_object(question), default=str)
    return line


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Write a file that `read_questions` reads back as equal questions. Atomic.

    Raises:
        UserError: if there are none, two have one key, or the file cannot be written.
    """
    if not questions:
        raise UserError(f"{path}: there are no questions to write")
    keys: set[str] = set()
    for question in questions:
        if question.key in keys:
            raise UserError(f"{path}: two questions have the key {question.key}; give each its own id")
        keys.add(question.key)
    with atomic_output(path) as stream:
        for question in questions:
            stream.write(to_line(question) + "\n")


NATIVE = Format(
    name="native",
    summary="JSON lines with id, dataset, question, golden_answers",
    matches=matches,
    read=read,
    repeats_allowed=False,
)
