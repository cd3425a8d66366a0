"""Compiled scoring: the same bits as numpy's, and when it takes over."""

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from searchparty.retrieval import scoring_choice
from searchparty.retrieval.scoring import Postings, best_rows
from searchparty.retrieval.scoring_choice import BestRows

PASSAGES = 40


def postings_of(weights_TP: NDArray[np.float32]) -> Postings:
    """The postings of a matrix of terms by passages, entries of 0 left out."""
    rows = [np.flatnonzero(weights_P).astype(np.int32) for weights_P in weights_TP]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return Postings(
        rows=np.concatenate(rows),
        weights=weights_TP[weights_TP > 0],
        starts=starts,
        ceilings=weights_TP.max(axis=1),
        passages=weights_TP.shape[1],
    )


@st.composite
def searches(draw: st.DrawFn) -> tuple[Postings, dict[int, int], int]:
    """An index of few distinct weights, so that scores are often equal, a query, and how many hits."""
    terms = draw(st.integers(1, 6))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights_TP = random.choice(np.float32([0, 0.1, 0.3, 1.7]), (terms, PASSAGES), p=[0.5, 0.3, 0.1, 0.1])
    weights_TP[:, 0] = 0.1  # no empty list
    query = draw(st.dictionaries(st.integers(0, terms - 1), st.integers(1, 3), min_size=1))
    return postings_of(weights_TP), query, draw(st.integers(1, PASSAGES + 5))


@settings(deadline=None)
@given(searches())
def test_compiled_code_finds_the_same_rows_with_the_same_scores_to_the_last_bit(
    search: tuple[Postings, dict[int, int], int],
) -> None:
    from searchparty.retrieval.maxscore import compiled_best_rows

    for _ in range(2):  # the buffers of the first search must not show in the second
        rows, scores = compiled_best_rows(*search)
        expected_rows, expected_scores = best_rows(*search)
        assert rows.tolist() == expected_rows.tolist()
        assert scores.tobytes() == expected_scores.tobytes()


def test_a_larger_index_after_a_smaller_one_gets_buffers_of_its_size() -> None:
    from searchparty.retrieval.maxscore import compiled_best_rows

    for passages in (5, 500, 50):
        postings = postings_of(np.full((1, passages), 0.5, np.float32))
        assert compiled_best_rows(postings, {0: 1}, 3)[0].tolist() == [0, 1, 2]


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(scoring_choice, "QUERIES_BEFORE_COMPILING", 3)
    yield


@pytest.mark.usefixtures("few_queries")
def test_compiled_code_takes_over_after_some_queries() -> None:
    search = BestRows()
    postings = postings_of(np.float32([[0.5, 0, 0.7], [0, 0.2, 0.2]]))
    before = [search(postings, {0: 1, 1: 1}, 2) for _ in range(3)]
    search.wait()
    assert search.is_compiled
    after = search(postings, {0: 1, 1: 1}, 2)
    assert all(
        rows.tolist() == after[0].tolist() == [2, 0] and scores.tobytes() == after[1].tobytes() for rows, scores in before
    )


@pytest.mark.usefixtures("few_queries")
def test_numpy_goes_on_where_numba_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "searchparty.retrieval.maxscore", None)
    search = BestRows()
    postings = postings_of(np.float32([[0.5, 0, 0.7]]))
    for _ in range(5):
        assert search(postings, {0: 1}, 1)[0].tolist() == [2]
        search.wait()
    assert not search.is_compiled


@settings(deadline=None)
@given(searches(), st.lists(st.lists(st.integers(-1, 5), max_size=8), max_size=6))
def test_a_batch_finds_what_each_of_its_queries_finds_alone(
    search: tuple[Postings, dict[int, int], int], queries: list[list[int]]
) -> None:
    postings, _, k = search
    queries = [[term for term in query if term < len(postings.ceilings)] for query in queries]
    compiled, plain = BestRows(), BestRows()
    compiled.prepare(postings)
    compiled.wait()
    found = compiled.of_many(postings, queries, k)
    assert found == [compiled.of_many(postings, [query], k)[0] for query in queries]
    assert found == plain.of_many(postings, queries, k)
