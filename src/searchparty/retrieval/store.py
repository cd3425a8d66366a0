"""Passages on disk: one JSON object a line, read by offset. Text is never held in memory as a whole.

Rows are numbered from 0 in corpus order. Ids are found through a sorted array of 64-bit hashes; the id itself is compared, so
equal hashes do no harm. Knows nothing of words or scores.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

from searchparty.errors import UserError
from searchparty.retrieval.mapped import map_array, map_bytes, save_array
from searchparty.retrieval.types import Passage

TEXT_FILE = "passages.jsonl"
OFFSETS_FILE = "passage_offsets.npy"
ID_HASHES_FILE = "id_hashes.npy"
ID_ROWS_FILE = "id_rows.npy"


@dataclass(frozen=True)
class StoreSummary:
    """What was written: number of passages, and SHA-256 over the stored lines and over the ids, one a line."""

    passages: int
    passages_sha256: str
    ids_sha256: str


def stored_line(passage: Passage) -> bytes:
    """A passage as it is stored and as corpora are told apart by."""
    return orjson.dumps({"id": passage.id, "title": passage.title, "text": passage.text}) + b"\n"


def hash_id(passage_id: str) -> int:
    """64 bits of a passage's id."""
    return int.from_bytes(hashlib.blake2b(passage_id.encode(), digest_size=8).digest(), "little")


def repeated_id(corpus: Path, line: int, passage_id: str, first_line: int, repeated: int) -> UserError:
    """What is wrong with a corpus in which so many ids stand more than once, this one on these lines."""
    return UserError(
        f"{corpus}:{line}: passage id {passage_id!r} was already used on line {first_line}"
        f" (ids used more than once: {repeated}); make the ids unique"
    )


def save_passages(folder: Path, numbered_passages: Iterable[tuple[int, Passage]], corpus: Path) -> StoreSummary:
    """Write `(line number, passage)` pairs of `corpus` into `folder`. Takes 24 bytes of memory per passage.

    Raises:
        UserError: two passages share an id (both lines are named), or there is no passage.
    """
    offsets, hashes, lines = array("q", [0]), array("Q"), array("q")
    passages_digest, ids_digest = hashlib.sha256(), hashlib.sha256()
    with (folder / TEXT_FILE).open("wb") as stream:
        for line_number, passage in numbered_passages:
            line = stored_line(passage)
            stream.write(line)
            passages_digest.update(line)
            ids_digest.update(passage.id.encode() + b"\n")
            offsets.append(offsets[-1] + len(line))
            hashes.append(hash_id(passage.id))
            lines.append(line_number)
    if not hashes:
        raise UserError(f"{corpus}: holds no passage; an index needs at least one")
    id_hashes = np.frombuffer(hashes, dtype=np.uint64)
    id_rows = np.argsort(id_hashes, kind="stable")
    save_array(folder / OFFSETS_FILE, np.frombuffer(offsets, dtype=np.int64))
    save_array(folder / ID_HASHES_FILE, id_hashes[id_rows])
    save_array(folder / ID_ROWS_FILE, id_rows)
    _refuse_duplicates(PassageStore(folder), lines, corpus)
    return StoreSummary(len(hashes), passages_digest.hexdigest(), ids_digest.hexdigest())


class PassageStore:
    """Reads passages by row or by id. Safe to use from several threads at once."""

    def __init__(self, folder: Path) -> None:
        self._text = map_bytes(folder / TEXT_FILE)
        self._offsets = map_array(folder / OFFSETS_FILE)
        # A view gives Python's own integers, which numpy's array makes slowly.
        self._begins = memoryview(self._offsets)  # type: ignore[arg-type]
        self._id_hashes = map_array(folder / ID_HASHES_FILE)
        self._id_rows = map_array(folder / ID_ROWS_FILE)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> Passage:
        """The passage at a row from 0. Raises IndexError outside."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} passages")
        return self.at((row,))[0]

    def at(self, rows: Sequence[int]) -> list[Passage]:
        """The passages at rows that must be there."""
        text, begins = self._text, self._begins
        records = [orjson.loads(text[begins[row] : begins[row + 1]]) for row in rows]
        return [Passage(record["id"], record["title"], record["text"]) for record in records]

    def __iter__(self) -> Iterator[Passage]:
        return (self[row] for row in range(len(self)))

    def row_of(self, passage_id: str) -> int | None:
        """The row of an id; None if the corpus does not have it."""
        wanted = np.uint64(hash_id(passage_id))
        place = int(np.searchsorted(self._id_hashes, wanted))
        while place < len(self) and self._id_hashes[place] == wanted:
            row = int(self._id_rows[place])
            if self[row].id == passage_id:
                return row
            place += 1
        return None

    def rows_with_equal_hashes(self) -> Iterator[list[int]]:
        """Groups of two or more rows, ascending, whose ids have one hash: nearly always one id used twice."""
        same_as_next = self._id_hashes[:-1] == self._id_hashes[1:]
        group: list[int] = []
        for place in np.flatnonzero(same_as_next).tolist():
            row, next_row = int(self._id_rows[place]), int(self._id_rows[place + 1])
            if group and group[-1] == row:
                group.append(next_row)
            else:
                if group:
                    yield group
                group = [row, next_row]
        if group:
            yield group


def _refuse_duplicates(store: PassageStore, lines: Sequence[int], corpus: Path) -> None:
    """Raise UserError for the first line that repeats an earlier id."""
    repeats: list[tuple[int, int, str]] = []
    for rows in store.rows_with_equal_hashes():
        first_row: dict[str, int] = {}
        for row in rows:
            passage_id = store[row].id
            if passage_id in first_row:
                repeats.append((row, first_row[passage_id], passage_id))
                break
            first_row[passage_id] = row
    if repeats:
        row, first, passage_id = min(repeats)
        raise repeated_id(corpus, lines[row], passage_id, lines[first], len(repeats))
