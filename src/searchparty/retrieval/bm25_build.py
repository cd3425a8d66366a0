"""Writes the files of a BM25 index: passages, vocabulary, postings. Memory grows with the vocabulary, hardly with the corpus.

The vocabulary is sorted before the postings are made, so a term's number is its place in the sorted words.
"""

from __future__ import annotations

import platform
from array import array
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

from searchparty import __version__
from searchparty.errors import UserError
from searchparty.retrieval.analysis import EnglishAnalyzer
from searchparty.retrieval.bm25_postings import (
    CEILINGS_FILE,
    ROWS_FILE,
    STARTS_FILE,
    WEIGHTS_FILE,
    NumberedWords,
    write_postings,
)
from searchparty.retrieval.building import Progress
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.manifest import FORMAT_VERSION, Manifest, file_sizes, save_manifest
from searchparty.retrieval.mapped import map_array
from searchparty.retrieval.scoring import Postings
from searchparty.retrieval.store import PassageStore, save_passages
from searchparty.retrieval.terms import save_terms
from searchparty.retrieval.types import Passage

_WORDS_FILE = "words.unfinished"
"""Numbers of all words, while an index is built."""
_REPORT_EVERY = 1000


def write_bm25_folder(
    corpus: Path, folder: Path, retriever: str, format: str | None, k1: float, b: float, progress: Progress
) -> None:
    """Fill the empty `folder` with an index over `corpus`; see `BM25Index.build`."""
    if not k1 >= 0 or not 0 <= b <= 1:
        raise UserError(f"k1 must be at least 0 and b from 0 to 1, not k1={k1:g}, b={b:g}")
    summary = save_passages(folder, _counted(read_corpus(corpus, format), progress), corpus)
    analyzer = EnglishAnalyzer()
    numbered, vocabulary = _number_words(PassageStore(folder), analyzer, folder / _WORDS_FILE, progress)
    if not vocabulary:
        raise UserError(f"{corpus}: no passage holds a word that can be searched for; is this the right file?")
    save_terms(folder, [word.encode() for word in vocabulary])
    postings = write_postings(folder, numbered, k1, b, progress)
    (folder / _WORDS_FILE).unlink()
    save_manifest(
        folder,
        Manifest(
            format=FORMAT_VERSION,
            retriever=retriever,
            settings={"k1": float(k1), "b": float(b), "formula": "lucene", **analyzer.settings},
            corpus=corpus.name,
            passages=summary.passages,
            passages_sha256=summary.passages_sha256,
            ids_sha256=summary.ids_sha256,
            counts={
                "terms": len(vocabulary),
                "postings": postings,
                "mean_words_per_passage": round(float(numbered.lengths.mean()), 2),
            },
            built_with={
                "searchparty": __version__,
                "numpy": version("numpy"),
                "PyStemmer": version("PyStemmer"),
                "python": platform.python_version(),
            },
            files=file_sizes(folder),
        ),
    )


def load_postings(folder: Path, passages: int) -> Postings:
    """Open the postings of an index by memory map."""
    return Postings(
        rows=map_array(folder / ROWS_FILE),
        weights=map_array(folder / WEIGHTS_FILE),
        starts=map_array(folder / STARTS_FILE),
        ceilings=map_array(folder / CEILINGS_FILE),
        passages=passages,
    )


def _counted(passages: Iterator[tuple[int, Passage]], progress: Progress) -> Iterator[tuple[int, Passage]]:
    for done, numbered in enumerate(passages):
        if done % _REPORT_EVERY == 0:
            progress("reading passages", done, None)
        yield numbered


def _number_words(
    store: PassageStore, analyzer: EnglishAnalyzer, file: Path, progress: Progress
) -> tuple[NumberedWords, list[str]]:
    """The words of all passages, kept in a file in the order of their first appearance, and the words in byte order."""
    first_seen: dict[str, int] = {}
    lengths = array("i")
    with file.open("wb") as stream:
        for done, passage in enumerate(store):
            if done % _REPORT_EVERY == 0:
                progress("counting words", done, len(store))
            numbers = array("i", [first_seen.setdefault(word, len(first_seen)) for word in analyzer.words(passage.contents)])
            numbers.tofile(stream)
            lengths.append(len(numbers))
    progress("counting words", len(store), len(store))

    sorted_words = sorted(first_seen, key=str.encode)
    final = np.empty(len(first_seen), dtype=np.int32)
    for number, word in enumerate(sorted_words):
        final[first_seen[word]] = number
    words = np.memmap(file, np.int32, "r") if sorted_words else np.empty(0, np.int32)
    return NumberedWords(words, np.frombuffer(lengths, np.int32), final), sorted_words
