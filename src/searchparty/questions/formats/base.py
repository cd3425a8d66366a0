"""What a format of questions is: a name, a test by content, and a way to turn one record into a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchparty.questions.containers import TableLayout
from searchparty.questions.records import Record
from searchparty.questions.types import Question

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """One way in which others write questions down."""

    name: str
    """What `--format` takes."""
    summary: str
    """One line for a person: how to recognise it."""
    matches: Callable[[Fields], bool]
    """Whether the first record of a file is of this format. Formats are tried in the order of the registry."""
    read: Callable[[Record], Question]
    """Turn one record into a question. Raises UserError naming the record."""
    dataset: str | None = None
    """The one dataset that has this format; None if many have it."""
    usual_dataset: str | None = None
    """For a format of many: the dataset if neither data nor path say another; None takes the format's own name."""
    repeats_allowed: bool = True
    """Whether a record may stand in a file a second time, equal in every field: published files have such, and the second is
    skipped. Unequal records with one key are refused in every format."""
    table: TableLayout | None = None
    """How its delimited text is laid out; None if it is never text."""

    def questions(self, record: Record) -> Sequence[Question]:
        """The questions of one record; one, except in collections. Raises HoldsNoQuestion where that is in order."""
        return [self.read(record)]


class HoldsNoQuestion(Exception):
    """A record of a mixed collection is something other than a question; the message says what."""
