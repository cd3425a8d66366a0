"""What scoring a run again changed: the numbers before and after, and which episodes moved.

Knows rows of scores, those of older versions among them; scores nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchparty.errors import UserError
from searchparty.evaluation.question_scores import columns, macro, question_scores
from searchparty.evaluation.summary import GRADED
from searchparty.files import read_jsonl

FIELDS = ("exact_match", *GRADED)
Rows = Sequence[tuple[int, Mapping[str, Any]]]


@dataclass(frozen=True)
class Change:
    """One score, macro over datasets, before and after."""

    field: str
    before: float | None
    """None if the older scores did not have it."""
    after: float
    episodes: int
    """Episodes whose score is another one."""


@dataclass(frozen=True)
class Moved:
    """One episode whose exact match or answer changed."""

    question_key: str
    sample: int
    before: str
    """Answer and exact match."""
    after: str


def scores_before(scores_file: Path) -> Rows:
    """The rows of earlier scoring; none if there was none, or if the file is damaged, since it is made anew."""
    try:
        rows = list(read_jsonl(scores_file)) if scores_file.is_file() else []
    except UserError:
        return []
    return rows if all({"dataset", "question_key", "sample"} <= row.keys() for _, row in rows) else []


def changes(before: Rows, scores_file: Path) -> tuple[list[Change], list[Moved]]:
    """What the scores in the file have that those before had not. Both empty if nothing changed."""
    after = list(read_jsonl(scores_file))
    old = {_key(row): row for _, row in before}
    found = []
    for field in FIELDS:
        known = bool(before) and all(isinstance(row.get(field), int | float) for _, row in before)
        moved = sum(row[field] != old[_key(row)][field] for _, row in after if known and _key(row) in old)
        if not known or moved or len(old) != len(after):
            earlier = macro(columns(question_scores(before, field, scores_file))) if known else None
            found.append(Change(field, earlier, macro(columns(question_scores(after, field, scores_file))), moved))
    episodes = [
        Moved(str(row["question_key"]), int(row["sample"]), _shown(old[_key(row)]), _shown(row))
        for _, row in after
        if _key(row) in old and _shown(old[_key(row)]) != _shown(row)
    ]
    return found, episodes


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["question_key"]), str(row["sample"])


def _shown(row: Mapping[str, Any]) -> str:
    return f"{row.get('answer') or '(no answer)'} [{row.get('exact_match')}]"
