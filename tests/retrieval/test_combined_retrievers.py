"""Fusion, re-ranking and unique titles, each against its definition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from dense_factories import build_dense
from hypothesis import given
from hypothesis import strategies as st
from retrieval_factories import DATA, build, ids

from searchparty.errors import Failure, FailureKind, ServiceFailure, UserError
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.fusion import FusedRetriever, Weighted
from searchparty.retrieval.reranking import RerankedRetriever
from searchparty.retrieval.types import Hit, Passage
from searchparty.retrieval.unique_titles import OnePerTitle


class ListRetriever:
    """Always finds the same passages, in order; remembers how many were asked for."""

    def __init__(self, *scored: tuple[str, float], name: str = "list") -> None:
        self.identity = name
        self.asked: list[int] = []
        self._hits = [Hit(passage(words), rank, score) for rank, (words, score) in enumerate(scored, start=1)]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.asked.append(k)
        return [self._hits[:k] for _ in queries]


class LengthRanker:
    """The longer the text, the better."""

    identity = "length"

    def __init__(self, change: float = 0.0) -> None:
        self._change = change

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[Passage]]) -> list[list[float]]:
        return [[len(one.text) + self._change for one in of_query] for of_query in passages]


def passage(words: str) -> Passage:
    """`title/text`, or a text alone; the text is the id."""
    title, _, text = words.rpartition("/")
    return Passage(text, title, text)


def shown(hits: Sequence[Hit]) -> list[tuple[str, float]]:
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [(hit.passage.id, hit.score) for hit in hits]


def test_reciprocal_rank_fusion_follows_the_formula() -> None:
    one, two = ListRetriever(("a", 9.0), ("b", 8.0), ("c", 7.0)), ListRetriever(("c", 3.0), ("d", 2.0), ("a", 1.0))
    [hits] = FusedRetriever([Weighted(one), Weighted(two, 2.0)]).search(["q"], 10)
    expected = {"a": 1 / 61 + 2 / 63, "b": 1 / 62, "c": 1 / 63 + 2 / 61, "d": 2 / 62}
    assert shown(hits) == [(name, pytest.approx(expected[name])) for name in ("c", "a", "d", "b")]


def test_a_weighted_sum_scales_the_scores_of_each_retriever() -> None:
    one, two = ListRetriever(("a", 9.0), ("b", 8.0), ("c", 5.0)), ListRetriever(("c", 3.0), ("d", 2.0), ("a", 1.0))
    [hits] = FusedRetriever([Weighted(one, 0.5), Weighted(two)], "weighted").search(["q"], 3)
    assert shown(hits) == [("c", pytest.approx(1.0)), ("a", pytest.approx(0.5)), ("d", pytest.approx(0.5))]


def test_scores_that_are_all_equal_count_in_full() -> None:
    [hits] = FusedRetriever([Weighted(ListRetriever(("a", 3.0))), Weighted(ListRetriever())], "weighted").search(["q"], 3)
    assert shown(hits) == [("a", 1.0)]


@given(
    order=st.permutations(["a", "b", "c", "d", "e"]),
    k=st.integers(1, 7),
    method=st.sampled_from(["reciprocal-rank", "weighted"]),
)
def test_fusing_a_retriever_with_itself_keeps_its_order(order: list[str], k: int, method: str) -> None:
    one = ListRetriever(*((name, 9.0 - place) for place, name in enumerate(order)))
    [hits] = FusedRetriever([Weighted(one), Weighted(one, 0.3)], method).search(["q"], k)
    assert ids(hits) == order[:k]


def test_passages_of_one_id_and_other_text_are_not_mixed_up() -> None:
    one, two = ListRetriever(("Up/x", 1.0)), ListRetriever(("Down/x", 1.0))
    [hits] = FusedRetriever([Weighted(one), Weighted(two)]).search(["q"], 5)
    assert [hit.passage.title for hit in hits] == ["Up", "Down"]


def test_fusion_asks_each_retriever_for_more_than_it_gives() -> None:
    one = ListRetriever(("a", 1.0))
    fused = FusedRetriever([Weighted(one)], depth=20)
    fused.search(["q"], 3)
    fused.search(["q"], 30)
    assert one.asked == [20, 30]


def test_a_retriever_that_fails_fails_the_fusion() -> None:
    class Down:
        identity = "down"

        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            raise ServiceFailure(Failure("retriever", FailureKind.UNREACHABLE, "gone"))

    with pytest.raises(ServiceFailure, match="gone"):
        FusedRetriever([Weighted(ListRetriever(("a", 1.0))), Weighted(Down())]).search(["q"], 3)


@pytest.mark.parametrize(
    ("weights", "method", "fault"), [([1], "sum", "no fusion"), ([], "weighted", "at l"), ([0], "weighted", "at l")]
)
def test_fusions_that_mean_nothing_are_refused(weights: list[float], method: str, fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        FusedRetriever([Weighted(ListRetriever(), weight) for weight in weights], method)


def test_words_and_vectors_together_over_real_passages(tmp_path: Path) -> None:
    passages = [one for _, one in read_corpus(DATA / "passages.jsonl")]
    bm25, dense = build(tmp_path / "bm25", passages), build_dense(tmp_path / "dense", passages)
    fused = FusedRetriever([Weighted(bm25), Weighted(dense, 0.5)])
    queries = (DATA / "queries.txt").read_text().splitlines()
    for query, hits in zip(queries, fused.search(queries, 5), strict=True):
        ranks = [{hit.passage.id: hit.rank for hit in one.search([query], 100)[0]} for one in (bm25, dense)]
        scores = {
            name: sum(weight / (60 + found[name]) for weight, found in zip((1, 0.5), ranks, strict=True) if name in found)
            for name in ranks[0] | ranks[1]
        }
        assert [hit.score for hit in hits] == pytest.approx(sorted(scores.values(), reverse=True)[:5])
    assert fused.identity == f"fused(reciprocal-rank,depth=100)[1 x {bm25.identity}, 0.5 x {dense.identity}]"


def test_a_ranker_decides_among_the_candidates_and_ties_keep_their_order() -> None:
    found = ListRetriever(("a", 9.0), ("ccc", 8.0), ("b", 7.0), ("bbb", 6.0), ("dddd", 5.0))
    reranked = RerankedRetriever(found, LengthRanker(), candidates=4)
    assert shown(reranked.search(["q"], 3)[0]) == [("ccc", 3.0), ("bbb", 3.0), ("a", 1.0)]
    assert ids(reranked.search(["q"], 5)[0])[0] == "dddd"
    assert reranked.identity == "reranked(length,candidates=4)[list]"


def test_a_ranker_that_gives_no_numbers_is_refused() -> None:
    with pytest.raises(UserError, match="length: gave NaN"):
        RerankedRetriever(ListRetriever(("a", 9.0)), LengthRanker(float("nan"))).search(["q"], 1)


def test_one_passage_of_each_title_is_kept_and_all_without_one() -> None:
    found = ListRetriever(("Up/1", 9.0), ("Up/2", 8.0), ("3", 7.0), ("4", 6.0), ("Down/5", 5.0), ("Up/6", 4.0))
    assert shown(OnePerTitle(found).search(["q"], 4)[0]) == [("1", 9.0), ("3", 7.0), ("4", 6.0), ("5", 5.0)]


def test_more_is_fetched_until_there_are_enough_titles() -> None:
    found = ListRetriever(*((f"Up/{number}", 1000.0 - number) for number in range(100)), ("Down/x", 1.0), ("Left/y", 0.5))
    assert ids(OnePerTitle(found).search(["q"], 2)[0]) == ["0", "x"]
    assert found.asked == [8, 16, 32, 64, 128]
    found.asked.clear()
    assert ids(OnePerTitle(found).search(["q"], 1)[0]) == ["0"]
    assert found.asked == [4]


def test_titles_that_never_end_are_given_up() -> None:
    found = ListRetriever(*((f"Up/{number}", -float(number)) for number in range(5000)))
    assert ids(OnePerTitle(found).search(["q"], 3)[0]) == ["0"]
    assert max(found.asked) < 5000


@pytest.mark.parametrize(
    "make", [lambda one: FusedRetriever([Weighted(one)]), lambda one: RerankedRetriever(one, LengthRanker()), OnePerTitle]
)
def test_impossible_numbers_of_hits_are_refused_and_no_queries_give_no_answers(make) -> None:
    with pytest.raises(ValueError, match="k must be at least 1"):
        make(ListRetriever()).search(["q"], 0)
    assert make(ListRetriever()).search([], 3) == []
    assert make(ListRetriever()).search(["q"], 3) == [[]]
