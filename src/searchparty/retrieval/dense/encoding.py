"""Encodes a corpus shard by shard into files that only ever grow, so that a build that was interrupted goes on where it was.

A shard counts once its bytes are on the disk and the journal, which is replaced in one step, says so; what stands behind the
last such shard in the files is cut off when encoding goes on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from searchparty.errors import UserError
from searchparty.files import read_json, write_json
from searchparty.retrieval.building import Progress
from searchparty.retrieval.dense.encoder import Encoder, checked
from searchparty.retrieval.dense.vectors import SCALES_FILE, VECTORS_FILE, Storage, store
from searchparty.retrieval.store import PassageStore

JOURNAL_FILE = "encoding.json"
SHARD_PASSAGES = 8192
"""Passages encoded between two entries of the journal: what an interruption costs at most."""
_BATCH = 256


@dataclass(frozen=True)
class Encoded:
    """What is in the files: number of vectors and a bound on their lengths."""

    vectors: int
    largest_norm: float


def encode_passages(
    passages: PassageStore,
    passages_sha256: str,
    encoder: Encoder,
    storage: Storage,
    work: Path,
    progress: Progress,
    shard_passages: int = SHARD_PASSAGES,
) -> Encoded:
    """Write the vectors of all passages, in their order, into the folder `work`, going on with what is there already.

    Raises:
        UserError: the folder holds vectors of another corpus, encoder or storage; the encoder gives vectors that cannot be
            searched; or the disk is full, and then the same command goes on later.
    """
    described = {
        "passages_sha256": passages_sha256,
        "model": encoder.name,
        **encoder.settings,
        "dimension": encoder.dimension,
        "storage": storage,
    }
    done = _resume(work, described, storage)
    while done.vectors < len(passages):
        start, end = done.vectors, min(done.vectors + shard_passages, len(passages))
        progress("encoding passages", start, len(passages))
        shard = np.concatenate(
            [
                checked(encoder.encode_passages(texts), len(texts), encoder, first)
                for first, texts in _batches(passages, start, end)
            ]
        )
        stored = store(shard, storage)
        append_numbers(work / VECTORS_FILE, stored.values)
        if stored.scales is not None:
            append_numbers(work / SCALES_FILE, stored.scales)
        done = Encoded(end, max(done.largest_norm, stored.largest_norm))
        write_json(work / JOURNAL_FILE, {**described, "vectors": done.vectors, "largest_norm": done.largest_norm})
    progress("encoding passages", len(passages), len(passages))
    return done


def _batches(passages: PassageStore, start: int, end: int) -> Iterator[tuple[int, Sequence[str]]]:
    """First row and contents of batches of passages, in order."""
    rows = iter(range(start, end))
    while batch := list(islice(rows, _BATCH)):
        yield batch[0], [passages[row].contents for row in batch]


def _resume(work: Path, described: dict[str, Any], storage: Storage) -> Encoded:
    """What may be kept of an earlier encoding; files are cut to it."""
    done = Encoded(0, 0.0)
    journal = work / JOURNAL_FILE
    if journal.is_file():
        written = read_json(journal, dict)
        for name, value in described.items():
            if written.get(name) != value:
                raise UserError(
                    f"{work}: holds unfinished vectors with {name} {written.get(name)!r} where {value!r} is asked for;"
                    " delete this folder, or build with the settings that it was begun with"
                )
        done = Encoded(int(written["vectors"]), float(written["largest_norm"]))
    else:
        work.mkdir(parents=True, exist_ok=True)
        write_json(journal, {**described, "vectors": 0, "largest_norm": 0.0})
    _cut(work / VECTORS_FILE, done.vectors * int(described["dimension"]) * np.dtype(storage).itemsize)
    if storage == "int8":
        _cut(work / SCALES_FILE, done.vectors * 4)
    return done


def append_numbers(path: Path, array: np.ndarray[Any, Any]) -> None:
    """Add numbers to the end of a file, on the disk when this returns."""
    try:
        with path.open("ab") as stream:
            stream.write(np.ascontiguousarray(array).tobytes())
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror}); make room and give the same command again, it goes on from here"
        ) from error


def _cut(path: Path, size: int) -> None:
    """Make a file that long. Raises UserError if it is shorter."""
    path.touch()
    if path.stat().st_size < size:
        raise UserError(
            f"{path}: is shorter than {JOURNAL_FILE} beside it says; delete the folder {path.parent} and begin again"
        )
    os.truncate(path, size)
