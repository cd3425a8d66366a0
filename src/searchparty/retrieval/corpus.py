"""Reads a corpus file in any of the forms in use, one passage at a time. Knows nothing of indexes.

The format is found by looking at the first line, never at the file's name; gzip and a byte order mark are taken as they come.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from searchparty.errors import UserError
from searchparty.files import open_bytes, read_lines
from searchparty.retrieval.dialect import passage_from_document
from searchparty.retrieval.types import Passage

Numbered = Iterator[tuple[int, Passage]]
"""Passages with the line, or for a JSON array the item, on which each begins, counted from 1."""

_QUESTION_FIELDS = {"question", "question_text", "golden_answers", "input"}


def read_corpus(path: Path, format: str | None = None) -> Numbered:
    """Yield the passages of a corpus in their order.

    Args:
        path: the file.
        format: a name in `FORMATS`; None finds it by content.

    Raises:
        UserError: no such file, unknown format, a file of questions, or a malformed line, which is named.
    """
    name = detect_format(path) if format is None else format
    if name not in FORMATS:
        raise UserError(f"unknown corpus format {name!r}; choose one of: {', '.join(FORMATS)}")
    for line, passage in FORMATS[name](path):
        # A title is one line wherever passages are printed or sent; a line end inside would cut it in two.
        yield line, replace(passage, title=re.sub(r"[\r\n]+", " ", passage.title))


def detect_format(path: Path) -> str:
    """The name in `FORMATS` of the file's format. Raises UserError if it is none of them."""
    with open_bytes(path) as stream:
        if stream.read(4) == b"PAR1":
            raise UserError(f"{path}: is a Parquet file; a corpus is read as JSON lines, JSON or TSV, convert it first")
    number, first = next(read_lines(path), (0, ""))
    if not number:
        raise UserError(f"{path}: holds only blank lines; a corpus needs at least one passage")
    if first.lstrip()[0] in "{[":
        return "jsonl" if first.lstrip()[0] == "{" else "json"
    cells = first.split("\t")
    names = {cell.strip('"').lower() for cell in cells}
    if {"id", "text"} <= names:
        return "dpr"
    if "question" in names or (len(cells) == 2 and cells[1].lstrip('"').startswith("[")):
        raise _questions_given(f"{path}:{number}")
    if len(cells) == 2 and _TITLE_AND_TEXT.match(cells[1].lstrip('"')):
        return "title-text"
    if len(cells) == 2 and _WIDE_GAP in cells[1]:
        return "kilt"
    raise UserError(
        f"{path}:{number}: is in no corpus format known here; give JSON lines with id, title and text, or name the format with"
        f" --format ({', '.join(FORMATS)})"
    )


def _read_jsonl(path: Path) -> Numbered:
    """`{"id", "title", "text"}` or `{"id", "contents"}` on each line, as in wiki-18; BEIR's `_id` is an id too."""
    for number, line in read_lines(path):
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise UserError(
                f"{path}:{number}: not valid JSON ({error.msg} at column {error.colno}); repair or remove this line"
            ) from None
        yield number, _from_record(record, f"{path}:{number}")


def _read_json(path: Path) -> Numbered:
    """One JSON array of `{"title", "text"}`, as HippoRAG writes them; a missing id is the position from 0. Read as a whole."""
    with open_bytes(path) as stream:
        try:
            records = orjson.loads(stream.read().decode("utf-8-sig"))
        except ValueError as error:
            raise UserError(f"{path}: not valid JSON ({error}); repair the file") from None
    if not isinstance(records, list):
        raise UserError(f"{path}: a JSON array of passages is needed, found {type(records).__name__}")
    for number, record in enumerate(records, start=1):
        if isinstance(record, dict) and "id" not in record and "_id" not in record:
            record = {**record, "id": number - 1}
        yield number, _from_record(record, f"{path}: item {number}")


def _read_dpr(path: Path) -> Numbered:
    """DPR's `id`, `text`, `title`: tab-separated, quoted as CSV. A header may order the columns otherwise."""
    columns = ["id", "text", "title"]
    for index, (number, cells) in enumerate(_csv_rows(path)):
        names = [cell.lower() for cell in cells]
        if index == 0 and {"id", "text"} <= set(names):
            columns = names
            continue
        if len(cells) != len(columns):
            raise UserError(
                f"{path}:{number}: {len(columns)} tab-separated cells are needed ({', '.join(columns)}), found {len(cells)}"
            )
        yield number, _from_record(dict(zip(columns, cells, strict=True)), f"{path}:{number}")


_TITLE_AND_TEXT = re.compile(r"Title: (?P<title>.*?) Text: *(?P<text>.*)", re.DOTALL)


def _read_title_text(path: Path) -> Numbered:
    """R1-Searcher's abstracts: id, then `Title: … Text: …`, some cells quoted as CSV."""
    for number, cells in _csv_rows(path):
        match = _TITLE_AND_TEXT.fullmatch(cells[1]) if len(cells) == 2 else None
        if match is None:
            raise UserError(f"{path}:{number}: an id, a tab and 'Title: … Text: …' are needed; repair or remove this line")
        yield number, Passage(cells[0], match["title"], match["text"])


_WIDE_GAP = "   "
"""What stands between title and text in R1-Searcher's cut of the KILT pages."""


def _read_kilt(path: Path) -> Numbered:
    """KILT pages in pieces of 100 words: id, a tab, title, three spaces, text; quotes mean nothing."""
    for number, line in read_lines(path):
        passage_id, tab, contents = line.partition("\t")
        title, gap, text = contents.partition(_WIDE_GAP)
        if not tab or not gap:
            raise UserError(
                f"{path}:{number}: an id, a tab, a title, three spaces and text are needed; repair or remove this line"
            )
        yield number, Passage(passage_id, title, text)


FORMATS: dict[str, Callable[[Path], Numbered]] = {
    "jsonl": _read_jsonl,
    "json": _read_json,
    "dpr": _read_dpr,
    "title-text": _read_title_text,
    "kilt": _read_kilt,
}
"""Corpus formats by the name that `--format` takes."""


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Tab-separated rows with CSV quoting and the line on which each begins. A quoted cell may run over several lines."""
    begins: list[int] = []

    def lines() -> Iterator[str]:
        for number, line in read_lines(path):
            begins.append(number)
            yield line + "\n"

    rows = csv.reader(lines(), delimiter="\t", strict=True)
    while True:
        begins.clear()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            line = begins[0] if begins else 1
            raise UserError(f"{path}:{line}: the quotes of this row do not match ({error}); repair or remove it") from None
        yield begins[0], cells


def _from_record(record: Any, place: str) -> Passage:
    """A passage from a record that must have an id of its own. `place` opens the error message."""
    if isinstance(record, dict):
        if "text" not in record and "contents" not in record and _QUESTION_FIELDS & record.keys():
            raise _questions_given(place)
        if record.get("id", record.get("_id")) is None:
            raise UserError(f"{place}: the passage has no 'id'; every passage needs one of its own")
    try:
        return passage_from_document(record)
    except ValueError as error:
        raise UserError(f"{place}: {error}; a passage is id, title and text, or id and contents") from None


def _questions_given(place: str) -> UserError:
    return UserError(f"{place}: this is a file of questions, not a corpus; an index is built over passages")
