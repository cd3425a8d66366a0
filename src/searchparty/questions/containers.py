"""What kind of file holds the records: JSON lines, a JSON array, parquet or delimited text; and the records in it, one by one.

Knows nothing of questions. Compression (gzip) and the kind are found by content, never by name. Places are given as `file:17`
for lines and `file: record 5` where records have no line of their own.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from searchparty.errors import UserError, missing_package
from searchparty.files import open_bytes, read_jsonl

Placed = tuple[str, Mapping[str, Any]]
"""Where a record stands, and its fields."""


class Container(StrEnum):
    """The kinds of file that records come in."""

    JSON_LINES = "JSON lines"
    JSON_ARRAY = "a JSON array"
    PARQUET = "parquet"
    TEXT = "delimited text"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How delimited text becomes records."""

    delimiter: str
    quoted: bool
    """Whether cells may stand in double quotes, with quotes inside doubled; if not, a quote is an ordinary character."""
    columns: tuple[str, ...] | None
    """Names for the cells of each row; None if the first row holds the names."""


def container_of(path: Path) -> Container:
    """Find the kind by the first bytes. Raises UserError if the file is missing, empty, damaged or holds only blanks."""
    with _reading(path), open_bytes(path) as stream:
        start = stream.read(4)
        if start == b"PAR1":
            return Container.PARQUET
        start = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        while not start:
            block = stream.read(1 << 16)
            if not block:
                raise UserError(f"{path}: the file holds nothing but blanks; was its download or conversion cut off?")
            start = block.lstrip()
    return {b"[": Container.JSON_ARRAY, b"{": Container.JSON_LINES}.get(start[:1], Container.TEXT)


def read_objects(path: Path, container: Container) -> Iterator[Placed]:
    """Yield the records of a file that is not text. Raises UserError for the first one that is no object."""
    if container is Container.JSON_LINES:
        with _reading(path):
            yield from ((f"{path}:{line}", fields) for line, fields in read_jsonl(path))
    elif container is Container.JSON_ARRAY:
        yield from _read_array(path)
    else:
        yield from _read_parquet(path)


def read_table(path: Path, layout: TableLayout) -> Iterator[Placed]:
    """Yield the records of delimited text. Raises UserError for a row whose number of cells is not that of the columns."""
    columns = layout.columns
    for line, cells in read_rows(path, layout):
        if columns is None:
            columns = tuple(cells)
        elif len(cells) != len(columns):
            wanted = f"{len(columns)} ({', '.join(columns)})" if len(columns) < 5 else str(len(columns))
            raise UserError(f"{path}:{line}: {len(cells)} cells where {wanted} are needed; check the delimiter and the quotes")
        else:
            yield f"{path}:{line}", dict(zip(columns, cells, strict=True))


def read_rows(path: Path, layout: TableLayout) -> Iterator[tuple[int, list[str]]]:
    """Yield `(line on which the row begins, cells)` for each row that is not blank."""
    begin = 1
    with _reading(path), io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(
            stream, delimiter=layout.delimiter, quoting=csv.QUOTE_MINIMAL if layout.quoted else csv.QUOTE_NONE, strict=True
        )
        try:
            for cells in rows:
                if any(cells):
                    yield begin, cells
                begin = rows.line_num + 1
        except csv.Error as error:
            raise UserError(f"{path}:{begin}: the row cannot be split into cells ({error}); check its quotes") from None
        except UnicodeDecodeError as error:
            raise UserError(f"{path}:{begin}: not UTF-8 from here on ({error.reason}); convert the file to UTF-8") from None


def _read_array(path: Path) -> Iterator[Placed]:
    with _reading(path), open_bytes(path) as stream:
        try:
            records = json.loads(stream.read().decode("utf-8-sig"))
        except json.JSONDecodeError as error:
            raise UserError(f"{path}:{error.lineno}: not valid JSON ({error.msg}); was the file cut off?") from None
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 at byte {error.start} ({error.reason}); convert the file to UTF-8") from None
    if not records:
        raise UserError(f"{path}: the array holds no records; was its conversion cut off?")
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise UserError(f"{path}: record {number}: a JSON object is needed, found {type(record).__name__}")
        yield f"{path}: record {number}", record


def _read_parquet(path: Path) -> Iterator[Placed]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise missing_package("pyarrow", "parquet", "reading parquet") from None
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=1024):
                for fields in batch.to_pylist():
                    number += 1
                    yield f"{path}: record {number}", fields
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path}: record {number + 1}: the parquet file is damaged ({reason}); fetch it again") from None
    if not number:
        raise UserError(f"{path}: the table holds no records; was its conversion cut off?")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn every sign of damaged compression into one line."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}: the compressed file is damaged or cut short ({error}); fetch it again") from None
