"""`best_rows` compiled: the same method, the same order of additions, so the same bits; about twice as fast and more.

Compiled code is kept beside the module or, where that cannot be written, in the user's cache, so only the first process ever
pays for compiling. Several threads search at once: compiled code does not hold Python's lock, and each thread has buffers of
its own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np
from numba import njit
from numpy.typing import NDArray

from searchparty.retrieval.scoring import ROUNDING, Postings

_buffers = threading.local()


def compiled_best_rows(
    postings: Postings, term_counts: Mapping[int, int], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """What `scoring.best_rows` returns, to the last bit."""
    ceilings = {term: float(postings.ceilings[term]) * count for term, count in term_counts.items()}
    terms = sorted(term_counts, key=lambda term: (-ceilings[term], term))
    scores, touched = _own_buffers(postings.passages)
    rows, found = _search(
        postings.rows,
        postings.weights,
        postings.starts,
        np.array(terms, np.int64),
        np.array([term_counts[term] for term in terms], np.float32),
        np.array([ceilings[term] for term in terms], np.float64),
        scores,
        touched,
        k,
    )
    order = np.lexsort((rows, -found))[:k]
    return rows[order], found[order]


def _own_buffers(passages: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """This thread's scores, all 0 between searches, and room for the rows whose score is not."""
    if getattr(_buffers, "passages", -1) < passages:
        _buffers.scores, _buffers.touched = np.zeros(passages, np.float32), np.empty(passages, np.int32)
        _buffers.passages = passages
    return _buffers.scores, _buffers.touched


@njit(nogil=True, cache=True)
def _search(rows, weights, starts, terms, counts, ceilings, scores, touched, k):  # type: ignore[no-untyped-def]
    """Rows and scores of the best k and of those that equal the last of them, in any order; leaves `scores` all 0."""
    heap = np.empty(k, np.float32)
    outstanding = ceilings.sum()
    slack = ROUNDING * (len(terms) + 1)
    marked = 0  # how many rows have a score
    running = 0  # how many of them can still be among the best
    closed = False  # whether an untouched passage can no longer be among the best
    contenders = touched
    for number in range(len(terms)):
        begin, end = starts[terms[number]], starts[terms[number] + 1]
        count = counts[number]
        if not closed:
            for place in range(begin, end):
                row = rows[place]
                if scores[row] == 0:
                    touched[marked] = row
                    marked += 1
                scores[row] += weights[place] * count
            running = marked
        elif running * _steps_of_lookup(end - begin) < end - begin:
            for place in range(running):
                row = contenders[place]
                at = begin + np.searchsorted(rows[begin:end], row)
                if at < end and rows[at] == row:
                    scores[row] += weights[at] * count
        else:
            for place in range(begin, end):
                if scores[rows[place]] != 0:
                    scores[rows[place]] += weights[place] * count
        outstanding = max(outstanding - ceilings[number], 0.0)
        if running >= k and number + 1 < len(terms):
            in_reach = _kth_greatest(scores, contenders, running, heap) * (1.0 - slack) - outstanding * (1.0 + slack)
            if not closed and in_reach > 0:
                closed = True
                contenders = touched[:marked].copy()
            if closed:
                kept = 0
                for place in range(running):
                    if scores[contenders[place]] >= in_reach:
                        contenders[kept] = contenders[place]
                        kept += 1
                running = kept
    least = _kth_greatest(scores, contenders, running, heap) if running > k else np.float32(0)
    kept = 0
    for place in range(running):
        if scores[contenders[place]] >= least:
            kept += 1
    best_rows, best_scores = np.empty(kept, np.int64), np.empty(kept, np.float32)
    at = 0
    for place in range(running):
        if scores[contenders[place]] >= least:
            best_rows[at], best_scores[at] = contenders[place], scores[contenders[place]]
            at += 1
    for place in range(marked):
        scores[touched[place]] = 0
    return best_rows, best_scores


@njit(nogil=True, cache=True)
def _steps_of_lookup(length):  # type: ignore[no-untyped-def]
    """How many halvings find a place in a list of this length."""
    steps = 1
    while (1 << steps) < length:
        steps += 1
    return steps


@njit(nogil=True, cache=True)
def _kth_greatest(scores, contenders, running, heap):  # type: ignore[no-untyped-def]
    """The smallest of the k greatest scores, k being the room of `heap`, which is at most `running`."""
    k = len(heap)
    for place in range(k):
        heap[place] = scores[contenders[place]]
    for place in range(k // 2 - 1, -1, -1):
        _sink(heap, place)
    for place in range(k, running):
        if scores[contenders[place]] > heap[0]:
            heap[0] = scores[contenders[place]]
            _sink(heap, 0)
    return heap[0]


@njit(nogil=True, cache=True)
def _sink(heap, place):  # type: ignore[no-untyped-def]
    """Restore the order of a heap, smallest first, below `place`."""
    value = heap[place]
    while True:
        child = 2 * place + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = value
