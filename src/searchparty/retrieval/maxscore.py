"""`best_rows` compiled, for many queries in one call: the same method, the same order of additions, so the same bits.

Compiled code is kept beside the module or, where that cannot be written, in the user's cache, so only the first process ever
pays for compiling. Several threads search at once: compiled code does not hold Python's lock, and each thread has buffers of
its own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from searchparty.retrieval.scoring import ROUNDING, Postings

_buffers = threading.local()


def compiled_best_rows(
    postings: Postings, term_counts: Mapping[int, int], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """What `scoring.best_rows` returns, to the last bit."""
    query = [term for term, count in term_counts.items() for _ in range(count)]
    rows, scores, found = compiled_best_rows_of_many(postings, [query], k)
    return rows[0, : found[0]], scores[0, : found[0]]


def compiled_best_rows_of_many(
    postings: Postings, queries: Sequence[Sequence[int]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """The best rows of many queries in one call of compiled code, which does not hold Python's lock meanwhile.

    Args:
        postings: the index.
        queries: the terms of each query; one that stands in it twice counts twice. Those below 0 are left out.
        k: at least 1.

    Returns:
        Rows [queries, k] and scores [queries, k], of which the first `found` [queries] are set.
    """
    begins = np.zeros(len(queries) + 1, np.int64)
    np.cumsum([len(query) for query in queries], out=begins[1:])
    terms = np.array([term for query in queries for term in query], np.int64)
    k = min(k, postings.passages)
    rows, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    found = np.zeros(len(queries), np.int64)
    _search_many(
        postings.rows,
        postings.weights,
        postings.starts,
        postings.ceilings,
        terms,
        begins,
        *_own_buffers(postings.passages),
        rows,
        scores,
        found,
    )
    return rows, scores, found


def _own_buffers(passages: int) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int32]]:
    """This thread's scores, all 0 between searches, and room twice for the rows whose score is not."""
    if getattr(_buffers, "passages", -1) < passages:
        _buffers.scores = np.zeros(passages, np.float32)
        _buffers.touched, _buffers.contenders = np.empty(passages, np.int32), np.empty(passages, np.int32)
        _buffers.passages = passages
    return _buffers.scores, _buffers.touched, _buffers.contenders


@njit(nogil=True, cache=True)
def _search_many(  # type: ignore[no-untyped-def]
    rows, weights, starts, ceilings, query_terms, begins, scores, touched, room, best_rows, best_scores, found
):
    """Each query after the other; fills the last three."""
    heap = np.empty(best_rows.shape[1], np.float32)
    for query in range(len(found)):
        terms, counts, shares = _ordered(query_terms[begins[query] : begins[query + 1]], ceilings)
        found[query] = _search(
            rows, weights, starts, terms, counts, shares, scores, touched, room, heap, best_rows[query], best_scores[query]
        )


@njit(nogil=True, cache=True)
def _ordered(words, ceilings):  # type: ignore[no-untyped-def]
    """Distinct terms of a query, their counts and the most they can add, greatest first, ties by ascending term."""
    terms, counts = np.empty(len(words), np.int64), np.empty(len(words), np.float32)
    distinct = 0
    for term in np.sort(words):
        if distinct and terms[distinct - 1] == term:
            counts[distinct - 1] += 1
        elif term >= 0:
            terms[distinct], counts[distinct] = term, 1
            distinct += 1
    shares = np.empty(distinct, np.float64)
    for number in range(distinct):
        term, count = terms[number], counts[number]
        share = np.float64(ceilings[term]) * count
        place = number
        while place > 0 and shares[place - 1] < share:
            terms[place], counts[place], shares[place] = terms[place - 1], counts[place - 1], shares[place - 1]
            place -= 1
        terms[place], counts[place], shares[place] = term, count, share
    return terms[:distinct], counts[:distinct], shares


@njit(nogil=True, cache=True)
def _search(  # type: ignore[no-untyped-def]
    rows, weights, starts, terms, counts, ceilings, scores, touched, room, heap, best_rows, best_scores
):
    """Write rows and scores of the best, as many as `heap` has room for; how many there are. Leaves `scores` all 0."""
    k = len(heap)
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
                room[:marked] = touched[:marked]
                contenders = room
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
        row, score = contenders[place], scores[contenders[place]]
        if score >= least:
            kept = _insert(row, score, best_rows, best_scores, kept)
    for place in range(marked):
        scores[touched[place]] = 0
    return kept


@njit(nogil=True, cache=True)
def _insert(row, score, best_rows, best_scores, kept):  # type: ignore[no-untyped-def]
    """Put a row in its place among the best, greatest score first, ties by ascending row; how many there are then."""
    if kept == len(best_rows):
        if best_scores[kept - 1] > score or (best_scores[kept - 1] == score and best_rows[kept - 1] < row):
            return kept
        kept -= 1
    place = kept
    while place > 0 and (best_scores[place - 1] < score or (best_scores[place - 1] == score and best_rows[place - 1] > row)):
        best_rows[place], best_scores[place] = best_rows[place - 1], best_scores[place - 1]
        place -= 1
    best_rows[place], best_scores[place] = row, score
    return kept + 1


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
