"""Recognises files that are often mistaken for questions, so that the error can say what to do with them instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

_PASSAGE_WORDS = 60
"""More words than this beside a running number are a passage: the usual corpora cut at 100, topics have fewer than 40."""


def other_object(path: Path, fields: Mapping[str, Any]) -> str | None:
    """What a file is whose first record has these fields; None if it may well be questions."""
    if "question" in fields or "input" in fields:
        return None
    if "contents" in fields:
        return _corpus(path, "wiki-18: id, contents")
    if "wikipedia_title" in fields and "text" in fields:
        return "this is KILT's knowledge source, whole pages without passage ids; cut it into passages with id, title and text"
    if "title" in fields and "text" in fields:
        return _corpus(path, "title, text")
    if fields and all(isinstance(value, list) and all(isinstance(part, str) for part in value) for value in fields.values()):
        return _corpus(path, "titles with their sentences")
    return None


def other_row(path: Path, cells: Sequence[str]) -> str | None:
    """What delimited text is whose first row, split at tabs, has these cells; None if it may well be questions."""
    if tuple(cells) == ("id", "text", "title"):
        return _corpus(path, "DPR's passages: id, text, title")
    if tuple(cells) == ("query-id", "corpus-id", "score") or (len(cells) == 1 and _is_judgement(cells[0].split())):
        return "these are relevance judgements (qrels), not questions; give the file of topics"
    if len(cells) >= 2 and cells[1].lstrip('"').startswith("Title: ") and " Text: " in cells[1]:
        return _corpus(path, "number, Title: ... Text: ...")
    if len(cells) == 2 and cells[0].isdecimal() and len(cells[1].split()) > _PASSAGE_WORDS:
        return _corpus(path, "number, passage")
    return None


def _corpus(path: Path, kind: str) -> str:
    command = f"searchparty index build {quote(str(path))} -o DIR"
    return f"this looks like a corpus ({kind}), not questions; make an index of it: {command}"


def _is_judgement(words: Sequence[str]) -> bool:
    return len(words) == 4 and words[1].isdecimal() and words[3].lstrip("-").isdecimal()
