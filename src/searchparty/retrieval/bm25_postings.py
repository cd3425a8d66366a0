"""Postings of BM25 out of numbered words, in memory that does not grow with the corpus: block by block into mapped files.

The weight of a term in a passage is idf · tf / (tf + k1 · (1 − b + b · |p| / average length)), see `bm25`: idf in float32, the
rest in float64, the result in float32, as in bm25s, whose weights these are but for the rounding of the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchparty.retrieval.building import Progress
from searchparty.retrieval.mapped import new_array, save_array

ROWS_FILE = "posting_rows.npy"
WEIGHTS_FILE = "posting_weights.npy"
STARTS_FILE = "posting_starts.npy"
CEILINGS_FILE = "term_ceilings.npy"

BLOCK_WORDS = 2**23
"""Words whose postings are made at a time: about 0.6 GB of memory."""


@dataclass(frozen=True)
class NumberedWords:
    """The words of all passages one after the other, by number.

    Attributes:
        words: int32 [words], mapped or not.
        lengths: words of each passage, int32 [passages].
        final: the number of the term for each number in `words`, int32 [terms].
    """

    words: NDArray[np.int32]
    lengths: NDArray[np.int32]
    final: NDArray[np.int32]


def write_postings(
    folder: Path, numbered: NumberedWords, k1: float, b: float, progress: Progress, block_words: int = BLOCK_WORDS
) -> int:
    """Write rows, weights, starts and ceilings into `folder`; the number of postings.

    Args:
        block_words: words taken at a time; a longer passage is taken as a whole.
    """
    passages, terms = len(numbered.lengths), len(numbered.final)
    frequencies = np.zeros(terms, np.int64)
    for first, block_terms, _, _ in _blocks(numbered, block_words):
        progress("counting passages of words", first, passages)
        frequencies += np.bincount(block_terms, minlength=terms)
    starts = np.concatenate(([0], np.cumsum(frequencies)))
    rows = new_array(folder / ROWS_FILE, np.int32, int(starts[-1]))
    weights = new_array(folder / WEIGHTS_FILE, np.float32, len(rows))

    idf = np.log(1 + (passages - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)
    saturation = k1 * ((1 - b) + b * numbered.lengths / numbered.lengths.mean())
    free = starts[:-1].copy()  # where the next posting of each term goes
    for first, block_terms, block_rows, counts in _blocks(numbered, block_words):
        progress("weighing words", first, passages)
        begins = np.flatnonzero(np.diff(block_terms, prepend=-1))
        lengths = np.diff(begins, append=len(block_terms))
        places = np.repeat(free[block_terms[begins]] - begins, lengths) + np.arange(len(block_terms))
        rows[places] = block_rows
        weights[places] = counts / (saturation[block_rows] + counts) * idf[block_terms]
        free[block_terms[begins]] += lengths
    progress("weighing words", passages, passages)
    save_array(folder / STARTS_FILE, starts)
    save_array(folder / CEILINGS_FILE, np.maximum.reduceat(weights, starts[:-1]))
    return len(rows)


Block = tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _blocks(numbered: NumberedWords, block_words: int) -> Iterator[Block]:
    """First row, then the postings of some passages, by term and then by row: terms, rows, counts."""
    ends = np.cumsum(numbered.lengths, dtype=np.int64)
    passages = len(ends)
    first = 0
    while first < passages:
        begin = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, begin + block_words, side="right")), first + 1)
        block = numbered.final[numbered.words[begin : int(ends[last - 1])]].astype(np.int64)
        block *= passages
        block += np.repeat(np.arange(first, last), numbered.lengths[first:last])
        postings, counts = np.unique(block, return_counts=True)
        block_terms, rows = np.divmod(postings, passages)
        yield first, block_terms, rows, counts
        first = last
