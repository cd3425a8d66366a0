"""One record of a question file on its way to a `Question`, and typed access to its fields.

Knows nothing of containers (JSON, text, parquet) or of any particular format. Every fault names the record's place in its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchparty.errors import UserError
from searchparty.questions.dataset_names import dataset_in_id
from searchparty.questions.types import Question


@dataclass(frozen=True, slots=True)
class Naming:
    """How the records of one file get their dataset: the user's word, then the data's, then the path's, then the format's."""

    override: str | None
    """What the user asked for; it beats everything."""
    in_path: str | None
    """What the path says; None where the format belongs to one dataset alone."""
    default: str
    """The format's dataset, or the format's name where it carries many."""

    def dataset(self, stated: str | None, record_id: str | None) -> str:
        """The dataset of a record that states `stated` (or nothing) and has the source's id `record_id` (or none)."""
        if self.override:
            return self.override
        if stated:
            return stated
        return (dataset_in_id(record_id) if record_id else None) or self.in_path or self.default


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of one record, and where it stands."""

    where: str
    """`file:17` for a line, `file: record 5` inside an array or a table."""
    number: int
    """Place in the file, counted from 0."""
    fields: Mapping[str, Any]
    naming: Naming

    def fault(self, problem: str) -> UserError:
        """The error for this record; `problem` says what is wrong and what is needed."""
        return UserError(f"{self.where}: {problem}")

    def text(self, name: str) -> str:
        """The field's text, as it is. Raises UserError if it is missing, no text, or blank."""
        value = self.fields.get(name)
        if not isinstance(value, str) or not value.strip():
            raise self.fault(f"the field {name!r} must hold text, found {_describe(value)}; repair or remove this record")
        return value

    def optional_text(self, name: str) -> str | None:
        """The field's text; None if it is missing, null or empty. Raises UserError for anything else."""
        value = self.fields.get(name)
        if value is None or value == "":
            return None
        return self.text(name)

    def identifier(self, *names: str) -> str | None:
        """The first of these fields that is there, as text; None if none is. Raises UserError for all but text and integers."""
        for name in names:
            value = self.fields.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
                raise self.fault(f"the field {name!r} must hold an id (text or a whole number), found {_describe(value)}")
            return str(value)
        return None

    def strings(self, name: str) -> tuple[str, ...]:
        """The entries of a list of texts; empty if the field is missing or null. Raises UserError for any other value."""
        return self.as_strings(self.fields.get(name), name)

    def as_strings(self, value: object, name: str) -> tuple[str, ...]:
        """The same for a value already taken out of the record; a single text counts as a list of one, a blank one as none."""
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,) if value.strip() else ()
        if isinstance(value, Sequence) and all(isinstance(entry, str) for entry in value):
            return tuple(value)
        raise self.fault(f"the field {name!r} must hold a list of texts, found {_describe(value)}")

    def objects(self, name: str) -> list[Mapping[str, Any]]:
        """The entries of a list of objects; empty if the field is missing or null. Raises UserError for any other value."""
        value = self.fields.get(name)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value):
            return value
        raise self.fault(f"the field {name!r} must hold a list of objects, found {_describe(value)}")

    def question(
        self,
        *,
        text: str,
        golden_answers: tuple[str, ...],
        record_id: str | None,
        row: str | None = None,
        dataset: str | None = None,
        used: Iterable[str],
        **attributes: Any,
    ) -> Question:
        """Build the question.

        Args:
            record_id: the source's id; None makes one from the dataset and `row`.
            row: what tells records apart where there is no id; the place in the file if None.
            dataset: what the record itself says about its dataset, in our spelling.
            used: names of the fields that found a place in the question or hold passages; all others are kept in `extra`.
            attributes: further attributes of `Question`.
        """
        name = self.naming.dataset(dataset, record_id)
        for word in (name, record_id or "", row or ""):
            if word != word.encode("utf-8", "replace").decode():  # keys stand in files, which cannot hold that
                raise self.fault(f"an id or a dataset's name has half of a surrogate pair ({word!a}); repair this record")
        left_over = set(self.fields).difference(used)
        return Question(
            id=record_id if record_id is not None else f"{name}_{self.number if row is None else row}",
            text=text,
            golden_answers=golden_answers,
            dataset=name,
            extra={key: value for key, value in self.fields.items() if key in left_over},
            **attributes,
        )


def unique(values: Iterable[str]) -> tuple[str, ...]:
    """The values in their order, each once."""
    return tuple(dict.fromkeys(values))


def shape_in_id(record_id: str | None) -> tuple[str | None, int | None]:
    """Shape and number of hops that a MuSiQue id begins with (`3hop1__...` gives `3hop1`, 3), or two times None."""
    shape = re.match(r"(\d)hop\d?(?=__)", record_id or "")
    return (shape[0], int(shape[1])) if shape else (None, None)


def split_in_id(record_id: str | None) -> str | None:
    """The split that ids such as `test_17` name, or None."""
    prefix = record_id.partition("_")[0] if record_id else ""
    return prefix if prefix in ("train", "dev", "test") else None


def _describe(value: object) -> str:
    if value is None:
        return "nothing"
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= 60 else f"{type(value).__name__} {shown[:57]}..."
