"""Writes the files of a BM25 index. bm25s computes the weights; this module feeds it word numbers and lays its arrays down.

The vocabulary is sorted before the weights are made, so a term's number is its place in the sorted words.
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
from searchparty.retrieval.building import Progress
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.manifest import FORMAT_VERSION, Manifest, file_sizes, save_manifest
from searchparty.retrieval.mapped import map_array, save_array
from searchparty.retrieval.scoring import Postings
from searchparty.retrieval.store import PassageStore, save_passages
from searchparty.retrieval.terms import save_terms
from searchparty.retrieval.types import Passage

ROWS_FILE = "posting_rows.npy"
WEIGHTS_FILE = "posting_weights.npy"
STARTS_FILE = "posting_starts.npy"
CEILINGS_FILE = "term_ceilings.npy"

_REPORT_EVERY = 1000


def write_bm25_folder(
    corpus: Path, folder: Path, retriever: str, format: str | None, k1: float, b: float, progress: Progress
) -> None:
    """Fill the empty `folder` with an index over `corpus`; see `BM25Index.build`."""
    if not k1 >= 0 or not 0 <= b <= 1:
        raise UserError(f"k1 must be at least 0 and b from 0 to 1, not k1={k1:g}, b={b:g}")
    summary = save_passages(folder, _counted(read_corpus(corpus, format), progress), corpus)
    analyzer = EnglishAnalyzer()
    words_of_passages, vocabulary = _number_words(PassageStore(folder), analyzer, progress)
    if not vocabulary:
        raise UserError(f"{corpus}: no passage holds a word that can be searched for; is this the right file?")

    progress("weighing words", 0, None)
    postings = _weigh(words_of_passages, vocabulary, k1, b)
    save_terms(folder, sorted(word.encode() for word in vocabulary))
    save_array(folder / ROWS_FILE, postings.rows)
    save_array(folder / WEIGHTS_FILE, postings.weights)
    save_array(folder / STARTS_FILE, postings.starts)
    save_array(folder / CEILINGS_FILE, postings.ceilings)
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
                "postings": len(postings.rows),
                "mean_words_per_passage": round(sum(map(len, words_of_passages)) / summary.passages, 2),
            },
            built_with={
                "searchparty": __version__,
                "bm25s": version("bm25s"),
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
    store: PassageStore, analyzer: EnglishAnalyzer, progress: Progress
) -> tuple[list[array[int]], dict[str, int]]:
    """Each passage as numbers of its words, and the number of each word; numbers follow the words' byte order."""
    first_seen: dict[str, int] = {}
    words_of_passages = []
    for done, passage in enumerate(store):
        if done % _REPORT_EVERY == 0:
            progress("counting words", done, len(store))
        words_of_passages.append(
            array("i", [first_seen.setdefault(word, len(first_seen)) for word in analyzer.words(passage.contents)])
        )
    progress("counting words", len(store), len(store))

    sorted_words = sorted(first_seen, key=str.encode)
    final = np.empty(len(first_seen), dtype=np.int32)
    final[[first_seen[word] for word in sorted_words]] = np.arange(len(sorted_words), dtype=np.int32)
    for numbers in words_of_passages:
        view = np.frombuffer(numbers, dtype=np.int32)
        view[:] = final[view]
    return words_of_passages, {word: number for number, word in enumerate(sorted_words)}


def _weigh(words_of_passages: list[array[int]], vocabulary: dict[str, int], k1: float, b: float) -> Postings:
    """Let bm25s compute the weight of every word in every passage."""
    # Imported here because it is only needed to build, and takes longer to import than an index takes to open.
    import bm25s

    builder = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy", csc_backend="numpy")
    builder.index((words_of_passages, vocabulary), create_empty_token=False, show_progress=False)
    starts = builder.scores["indptr"].astype(np.int64, copy=False)
    weights = builder.scores["data"]
    return Postings(
        rows=builder.scores["indices"],
        weights=weights,
        starts=starts,
        ceilings=np.maximum.reduceat(weights, starts[:-1]),
        passages=len(words_of_passages),
    )
