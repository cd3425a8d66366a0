"""BM25: the formula, agreement with bm25s, exactness of pruning, and the edges."""

from __future__ import annotations

import errno
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from retrieval_factories import DATA, build, ids, passages_of

from searchparty.errors import UserError
from searchparty.retrieval.analysis import EnglishAnalyzer
from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.scoring import Postings, best_rows
from searchparty.retrieval.types import Passage


@pytest.fixture(scope="module")
def real_index(tmp_path_factory: pytest.TempPathFactory) -> BM25Index:
    return BM25Index.build(DATA / "passages.jsonl", tmp_path_factory.mktemp("real") / "index")


@pytest.fixture(scope="module")
def real_queries() -> list[str]:
    return (DATA / "queries.txt").read_text(encoding="utf-8").splitlines()


def test_scores_follow_the_formula(tmp_path: Path) -> None:
    index = build(tmp_path, [Passage("a", "cat", "cat dog"), Passage("b", "", "dog bird fish mouse horse")], k1=0.9, b=0.4)
    [hits] = index.search(["cat dog"], 2)
    mean_length = (3 + 5) / 2

    def weight(count: int, passages_with_word: int, length: int) -> float:
        idf = math.log(1 + (2 - passages_with_word + 0.5) / (passages_with_word + 0.5))
        return idf * count / (count + 0.9 * (1 - 0.4 + 0.4 * length / mean_length))

    assert ids(hits) == ["a", "b"]
    assert hits[0].score == pytest.approx(weight(2, 1, 3) + weight(1, 2, 3), rel=1e-5)
    assert hits[1].score == pytest.approx(weight(1, 2, 5), rel=1e-5)
    assert [hit.rank for hit in hits] == [1, 2]


@pytest.mark.parametrize("k", [1, 3, 10, 100])
def test_hits_and_scores_agree_with_bm25s(real_index: BM25Index, real_queries: list[str], k: int) -> None:
    analyzer = EnglishAnalyzer()
    passages = [passage for _, passage in read_corpus(DATA / "passages.jsonl")]
    reference = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
    reference.index([analyzer.words(passage.contents) for passage in passages], show_progress=False)
    tokens = [analyzer.words(query) for query in real_queries]
    rows, scores = reference.retrieve(tokens, k=k, show_progress=False)
    for query, reference_rows, reference_scores in zip(real_queries, rows, scores, strict=True):
        [hits] = real_index.search([query], k)
        found = reference_scores > 0
        np.testing.assert_allclose([hit.score for hit in hits], reference_scores[found], atol=1e-5)
        # Passages whose score equals the last one's may be chosen otherwise; all above it must be the same.
        above = reference_scores > reference_scores[found][-1] + 1e-5
        assert {passages[row].id for row in reference_rows[above]} <= set(ids(hits))


def test_golden_passages_are_found_for_real_questions(real_index: BM25Index) -> None:
    [hits] = real_index.search(["Who is the spouse of the director of film Up, Down, Fragile?"], 1)
    assert hits[0].passage.title == "Up, Down, Fragile"


def all_sums(postings: Postings, term_counts: Mapping[int, int]) -> NDArray[np.float32]:
    """The score of every passage by plain addition, strongest term first."""
    scores = np.zeros(postings.passages, dtype=np.float32)
    for term in sorted(term_counts, key=lambda term: (-float(postings.ceilings[term]) * term_counts[term], term)):
        for place in range(postings.starts[term], postings.starts[term + 1]):
            weight = postings.weights[place]
            count = term_counts[term]
            scores[postings.rows[place]] += weight * np.float32(count) if count > 1 else weight
    return scores


@st.composite
def postings_and_query(draw: st.DrawFn) -> tuple[Postings, dict[int, int]]:
    passages = draw(st.integers(1, 60))
    terms = draw(st.integers(1, 6))
    lists = [sorted(draw(st.sets(st.integers(0, passages - 1), min_size=1))) for _ in range(terms)]
    size = draw(st.sampled_from([0.01, 1.0, 30.0]))
    weights = [[np.float32(size * draw(st.integers(1, 8)) / 8 / (term + 1)) for _ in rows] for term, rows in enumerate(lists)]
    flat = np.concatenate([np.asarray(part, dtype=np.float32) for part in weights])
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    rows = np.concatenate([np.asarray(part, dtype=np.int32) for part in lists])
    postings = Postings(rows, flat, starts, np.maximum.reduceat(flat, starts[:-1]), passages)
    query = draw(st.dictionaries(st.integers(0, terms - 1), st.integers(1, 3), min_size=1))
    return postings, query


@settings(max_examples=300)
@given(postings_and_query(), st.integers(1, 70))
def test_pruning_changes_no_score_and_no_order(case: tuple[Postings, dict[int, int]], k: int) -> None:
    postings, query = case
    expected_scores = all_sums(postings, query)
    expected_rows = [row for row in np.argsort(-expected_scores, kind="stable") if expected_scores[row] > 0][:k]
    rows, scores = best_rows(postings, query, k)
    assert rows.tolist() == expected_rows
    assert scores.tolist() == expected_scores[expected_rows].tolist()


def test_pruning_is_at_work_on_a_long_list(tmp_path: Path) -> None:
    index = build(tmp_path, passages_of(*["rare common"] * 3, *["common"] * 5000))
    [hits] = index.search(["common rare"], 3)
    assert ids(hits) == ["p0", "p1", "p2"]


def test_ties_are_in_corpus_order(tmp_path: Path) -> None:
    index = build(tmp_path, passages_of("other", *["same words"] * 30))
    [hits] = index.search(["same"], 10)
    assert ids(hits) == [f"p{number}" for number in range(1, 11)]
    assert len({hit.score for hit in hits}) == 1


def test_a_repeated_query_word_counts_twice(tmp_path: Path) -> None:
    index = build(tmp_path, passages_of("cat", "dog", "fish"))
    once, twice = index.search(["cat", "cat cats"], 1)
    assert twice[0].score == pytest.approx(2 * once[0].score)


@pytest.mark.parametrize("query", ["", "the of", "zzzunknown", "?!", "\x00", "\U0001f600"])
def test_a_query_without_a_known_word_has_no_hits(tmp_path: Path, query: str) -> None:
    assert build(tmp_path, passages_of("cat", "dog")).search([query], 5) == [[]]


def test_no_queries_give_no_results(real_index: BM25Index) -> None:
    assert real_index.search([], 3) == []


def test_k_larger_than_the_corpus_gives_what_there_is(tmp_path: Path) -> None:
    [hits] = build(tmp_path, passages_of("cat", "cat cat", "dog")).search(["cat"], 1000)
    assert ids(hits) == ["p1", "p0"]


def test_a_smaller_k_gives_the_beginning_of_a_larger_one(real_index: BM25Index, real_queries: list[str]) -> None:
    for query in real_queries:
        [many], [few] = real_index.search([query], 50), real_index.search([query], 4)
        assert few == many[:4]


def test_a_query_of_very_many_words_is_searched(real_index: BM25Index, real_queries: list[str]) -> None:
    [hits] = real_index.search([" ".join(real_queries * 20)], 5)
    assert len(hits) == 5


def test_the_title_can_be_found(tmp_path: Path) -> None:
    [hits] = build(tmp_path, [Passage("a", "Zanzibar", "an island"), Passage("b", "Crete", "an island")]).search(
        ["zanzibar"], 5
    )
    assert ids(hits) == ["a"]


def test_threads_at_once_get_the_same_hits_as_one_alone(real_index: BM25Index, real_queries: list[str]) -> None:
    expected = real_index.search(real_queries, 5)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: real_index.search(real_queries, 5), range(24)):
            assert found == expected


def test_a_reopened_index_gives_the_same_hits(tmp_path: Path, real_queries: list[str]) -> None:
    built = BM25Index.build(DATA / "passages.jsonl", tmp_path / "index")
    opened = BM25Index(tmp_path / "index")
    assert opened.search(real_queries, 5) == built.search(real_queries, 5)
    assert opened.identity == built.identity


def test_identity_changes_with_settings_and_with_the_corpus(tmp_path: Path) -> None:
    def identities() -> Iterator[str]:
        yield build(tmp_path / "1", passages_of("cat")).identity
        yield build(tmp_path / "2", passages_of("cat"), k1=1.2).identity
        yield build(tmp_path / "3", passages_of("dog")).identity

    assert max(Counter(identities()).values()) == 1
    assert build(tmp_path / "4", passages_of("cat")).identity == BM25Index(tmp_path / "1" / "index").identity


def test_a_disk_that_is_full_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(UserError, match="cannot be written \\(No space left on device\\); nothing was left behind"):
        build(tmp_path, passages_of("cat", "dog"))
    assert [path.name for path in tmp_path.iterdir() if "index" in path.name] == []
