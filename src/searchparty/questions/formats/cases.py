"""A collection of noteworthy records: JSON lines that each say `why` they were collected, whatever else they hold.

A line may be a question of any other format, an excerpt of one, a raw line of a DPR file (`line`), one question text with
several `records`, or a whole `record` of another format. Lines that hold no question, such as passages, are named as such
and never silently dropped. `why` is kept in `extra`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from searchparty.questions.formats.base import Fields, Format, HoldsNoQuestion
from searchparty.questions.records import Naming, Record
from searchparty.questions.types import Question


def read_excerpt(record: Record) -> Question:
    """A question of which only some fields were collected: no answers is in order, all else is kept in `extra`."""
    return record.question(
        text=record.text("question"),
        golden_answers=record.strings("golden_answers"),
        record_id=record.identifier("id", "_id"),
        dataset=record.optional_text("dataset"),
        used=("id", "_id", "dataset", "source", "question", "golden_answers"),
        source=record.optional_text("source"),
    )


@dataclass(frozen=True)
class Cases(Format):
    """The format of collections. `others` are the formats a line may be of, in the order in which they are tried."""

    others: Sequence[Format] = ()

    def questions(self, record: Record) -> Sequence[Question]:
        """All questions of one line."""
        fields = {key: value for key, value in record.fields.items() if key != "why"}
        questions = [self._read(replace(record, fields=part)) for part in self._parts(record, fields)]
        for question in questions:
            question.extra["why"] = record.fields.get("why")
        return questions

    def _parts(self, record: Record, fields: Fields) -> list[Fields]:
        if isinstance(fields.get("record"), Mapping):
            return [fields["record"]]
        if isinstance(fields.get("records"), list):
            shared = {key: value for key, value in fields.items() if key != "records"}
            return [{**shared, **part} for part in record.objects("records")]
        if isinstance(fields.get("line"), str):
            cells = next(csv.reader([fields["line"]], delimiter="\t"), [])
            if len(cells) != 2:
                raise HoldsNoQuestion("a raw line that is not a question and its answers")
            return [{"question": cells[0], "answers": cells[1]}]
        if "question" in fields:
            return [fields]
        raise HoldsNoQuestion("a passage" if "passage" in fields else f"no question among its fields {', '.join(fields)}")

    def _read(self, record: Record) -> Question:
        for other in self.others:
            if other.matches(record.fields):
                naming = Naming(record.naming.override, record.naming.in_path, other.dataset or self.name)
                return other.read(replace(record, naming=naming))
        return read_excerpt(record)
