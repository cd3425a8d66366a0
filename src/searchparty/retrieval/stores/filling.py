"""Fills a collection in a search server from a corpus file, in two passes: the first counts, the second sends."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from searchparty.errors import UserError
from searchparty.retrieval.analysis import EnglishAnalyzer
from searchparty.retrieval.building import Progress, no_progress
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.store import hash_id, repeated_id, stored_line
from searchparty.retrieval.stores.store import Store, StoreManifest, read_record

T = TypeVar("T")

_TOGETHER = 256
"""Passages sent in one request."""


@dataclass(frozen=True)
class Survey:
    """What the first pass over a corpus finds: number of passages, their SHA-256, and their mean number of words."""

    passages: int
    passages_sha256: str
    mean_words: float


def fill_store(
    corpus: Path,
    store: Store,
    name: str,
    *,
    format: str | None = None,
    k1: float = 0.9,
    b: float = 0.4,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> StoreManifest:
    """Make a collection out of a corpus. It can be searched only when it is complete.

    Args:
        corpus: a file that `read_corpus` can read.
        store: where the collection is made.
        name: names it in errors.
        format: name of the corpus format; None finds it by content.
        k1: how slowly a repeated word stops adding to the score, at least 0.
        b: how much long passages are marked down, from 0 to 1.
        overwrite: replace a collection that this program made.
        progress: told about each stage.

    Raises:
        UserError: faults of the corpus, or a collection that is there already.
        ServiceFailure: the server cannot be asked.
    """
    if not k1 >= 0 or not 0 <= b <= 1:
        raise UserError(f"k1 must be at least 0 and b from 0 to 1, not k1={k1:g}, b={b:g}")
    existing = read_record(store, name)
    if existing is not None and not overwrite:
        raise UserError(f"{name}: already exists; choose another name or add --overwrite")
    survey = survey_corpus(corpus, format, progress)
    manifest = StoreManifest(
        retriever=store.retriever,
        settings=store.settings(k1, b, survey.mean_words),
        corpus=corpus.name,
        passages=survey.passages,
        passages_sha256=survey.passages_sha256,
    )
    if existing is not None:
        store.delete()
    store.create(manifest)
    row = 0
    for passages in _batches(passage for _, passage in read_corpus(corpus, format)):
        progress("sending passages", row, survey.passages)
        store.add(manifest, row, passages)
        row += len(passages)
    complete = manifest.model_copy(update={"complete": True})
    store.finish(complete)
    progress("sending passages", row, survey.passages)
    return complete


def survey_corpus(corpus: Path, format: str | None, progress: Progress) -> Survey:
    """Read a corpus once. Takes 8 bytes of memory per passage.

    Raises:
        UserError: it holds no passage, or an id twice; both lines are named.
    """
    analyzer, digest, id_hashes, words = EnglishAnalyzer(), hashlib.sha256(), array("Q"), 0
    for _, passage in read_corpus(corpus, format):
        if len(id_hashes) % 1000 == 0:
            progress("counting words", len(id_hashes), None)
        digest.update(stored_line(passage))
        id_hashes.append(hash_id(passage.id))
        words += len(analyzer.words(passage.contents))
    if not id_hashes:
        raise UserError(f"{corpus}: holds no passage; a collection needs at least one")
    if not words:
        raise UserError(f"{corpus}: no passage holds a word that can be searched for; is this the right file?")
    hashes, counts = np.unique(np.frombuffer(id_hashes, dtype=np.uint64), return_counts=True)
    if (repeated := hashes[counts > 1]).size:
        _refuse_repeated_ids(corpus, format, {int(number) for number in repeated})
    return Survey(len(id_hashes), digest.hexdigest(), words / len(id_hashes))


def _refuse_repeated_ids(corpus: Path, format: str | None, suspects: set[int]) -> None:
    """Raise UserError for the first id that stands there twice; equal hashes of different ids do no harm."""
    lines: dict[str, list[int]] = {}
    for line, passage in read_corpus(corpus, format):
        if hash_id(passage.id) in suspects:
            lines.setdefault(passage.id, []).append(line)
    repeated = {passage_id: found for passage_id, found in lines.items() if len(found) > 1}
    if repeated:
        passage_id, found = min(repeated.items(), key=lambda item: item[1][1])
        raise repeated_id(corpus, found[1], passage_id, found[0], len(repeated))


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _TOGETHER)):
        yield batch
