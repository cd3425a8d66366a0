"""FAISS indexes over stored vectors, and flat indexes of the field that are taken over as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dense_factories import HashingEncoder, build_dense
from retrieval_factories import DATA, ids, passages_of, write_corpus

from searchparty.errors import UserError
from searchparty.retrieval.building import no_progress
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.dense.build import DenseOptions
from searchparty.retrieval.dense.deciding import Found
from searchparty.retrieval.dense.exact import ExactSearch
from searchparty.retrieval.dense.faiss_kinds import KINDS, lists_for
from searchparty.retrieval.dense.index import DenseIndex
from searchparty.retrieval.dense.recall import recall, sample_queries
from searchparty.retrieval.dense.vectors import STORAGES, Storage, store

faiss = pytest.importorskip("faiss")

from searchparty.retrieval.dense.faiss_search import FaissSearch, build_faiss  # noqa: E402

QUERIES = (DATA / "queries.txt").read_text(encoding="utf-8").splitlines()
PASSAGES = [passage for _, passage in read_corpus(DATA / "passages.jsonl")]
PIECES = [replace(one, id=f"{one.id}-{part}", text=one.text[60 * part :]) for one in PASSAGES for part in range(3)]
"""Enough passages for an index that is trained."""


def clustered(rows: int, dimension: int = 32) -> np.ndarray:
    """Unit vectors around a few centres, as those of texts are; independent ones have no clusters to find."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(20, dimension))
    vectors = centres[generator.integers(0, 20, rows)] + 0.5 * generator.normal(size=(rows, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def flat_index(path: Path, vectors: np.ndarray, metric: int = faiss.METRIC_INNER_PRODUCT) -> Path:
    index = faiss.IndexFlat(vectors.shape[1], metric)
    index.add(vectors)
    faiss.write_index(index, str(path))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_faiss_index_finds_what_exact_search_finds_and_says_how_much(tmp_path: Path, kind: str) -> None:
    built = build_dense(tmp_path, PIECES, HashingEncoder(dimension=64), search=kind)
    counts = built.manifest.counts
    assert counts["recall_at_10"] >= 0.95
    assert counts["recall_queries"] == 197, "some pieces have no text"
    exact = DenseIndex(tmp_path / "index", HashingEncoder(dimension=64), search="exact")
    found, best = built.search(QUERIES, 10), exact.search(QUERIES, 10)
    shares = [len(set(ids(some)) & set(ids(all_))) / 10 for some, all_ in zip(found, best, strict=True)]
    assert np.mean(shares) > 0.85
    scores = {(q, hit.passage.id): hit.score for q, hits in enumerate(best) for hit in hits}
    assert all(hit.score == scores.get((q, hit.passage.id), hit.score) for q, hits in enumerate(found) for hit in hits)


def test_the_identity_names_the_way_of_searching(tmp_path: Path) -> None:
    hnsw = build_dense(tmp_path / "hnsw", PASSAGES[:30], search="hnsw")
    exact = build_dense(tmp_path / "exact", PASSAGES[:30])
    assert "efSearch=64,faiss=HNSW32," in hnsw.identity
    assert DenseIndex(tmp_path / "hnsw" / "index", HashingEncoder(), search="exact").identity == exact.identity


@pytest.mark.parametrize("storage", STORAGES)
def test_equal_passages_are_ranked_by_corpus_order(tmp_path: Path, storage: Storage) -> None:
    index = build_dense(tmp_path, passages_of("cat", "dog", "cat", "cat", "dog"), search="hnsw", storage=storage)
    assert [ids(hits) for hits in index.search(["cat", "dog", ""], 2)] == [["p0", "p2"], ["p1", "p4"], []]


def test_a_row_of_minus_one_never_becomes_a_passage(tmp_path: Path) -> None:
    vectors = store(clustered(2000), "float32")
    build_faiss(vectors, "ivf", tmp_path / "ivf", no_progress)
    one_list = FaissSearch(vectors, "ivf", tmp_path / "ivf", 1)
    _, rows = one_list._index.search(vectors.values[:1], 2000)
    assert (rows == -1).any()
    [found] = one_list.search(vectors.values[:1], 1990)
    assert 0 < len(found.rows) < 1990
    assert len(set(found.rows.tolist())) == len(found.rows)
    assert found.rows.min() >= 0


def test_more_effort_finds_more(tmp_path: Path) -> None:
    vectors, queries = store(clustered(4000), "float16"), clustered(4000)[:100]
    build_faiss(vectors, "ivf", tmp_path / "ivf", no_progress)
    truth = ExactSearch(vectors).search(queries, 10)
    measured = [recall(FaissSearch(vectors, "ivf", tmp_path / "ivf", effort), truth, queries) for effort in (1, 8, 102)]
    assert measured == sorted(measured)
    assert measured[0] < 0.9 < measured[2]


def test_recall_counts_a_tie_with_the_last_as_found() -> None:
    class Fixed:
        def search(self, queries: np.ndarray, k: int) -> list[Found]:
            return [
                Found(np.array([7, 9]), np.array([3.0, 1.0], np.float32)),
                Found(np.array([4]), np.array([2.0], np.float32)),
            ]

    truth = [
        Found(np.array([7, 8]), np.array([3.0, 1.0], np.float32)),
        Found(np.array([1, 4]), np.array([5.0, 2.0], np.float32)),
    ]
    assert recall(Fixed(), truth, np.zeros((2, 1), np.float32), 2) == 0.75


def test_sampled_queries_are_pieces_of_passages_and_always_the_same(tmp_path: Path) -> None:
    passages = build_dense(tmp_path, PASSAGES[:20]).passages
    queries = sample_queries(passages, 5)
    assert queries == sample_queries(passages, 5)
    texts = [" ".join(passage.text.split()) for passage in PASSAGES[:20]]
    assert all(any(query in text for text in texts) and len(query.split()) <= 10 for query in queries)


@pytest.mark.parametrize(("vectors", "lists"), [(624, 16), (1500, 38), (10_000, 256), (21_015_324, 16384)])
def test_lists_grow_with_the_root_of_the_corpus_and_can_be_trained(vectors: int, lists: int) -> None:
    assert lists_for(vectors) == lists


def test_a_faiss_file_of_other_vectors_is_refused(tmp_path: Path) -> None:
    vectors = store(clustered(100), "float32")
    build_faiss(store(clustered(99), "float32"), "flat", tmp_path / "flat", no_progress)
    with pytest.raises(UserError, match="is over 99 vectors of 32 numbers, beside it are 100 of 32"):
        FaissSearch(vectors, "flat", tmp_path / "flat", 0)
    (tmp_path / "flat").write_bytes(b"not an index")
    with pytest.raises(UserError, match=r"flat: cannot be read .*; build the index again"):
        FaissSearch(vectors, "flat", tmp_path / "flat", 0)


def test_too_few_passages_for_an_index_that_is_trained_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="an ivf index needs 624 passages to be trained, here are 50; choose exact"):
        build_dense(tmp_path, PASSAGES[:50], search="ivf")


def test_an_index_whose_vectors_cannot_be_cut_in_fours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a multiple of 4, these have 30; choose hnsw or sq8"):
        build_dense(tmp_path, PASSAGES[:50], HashingEncoder(dimension=30), search="ivf")


@pytest.mark.parametrize(
    ("options", "fault"), [({"search": "magic"}, "'magic'; choose one of: exact, flat, ivf"), ({"recall": 0}, "rec")]
)
def test_options_that_mean_nothing_are_refused(options: dict[str, str], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        DenseOptions(**options)


def test_an_existing_flat_index_opens_as_it_is(tmp_path: Path) -> None:
    encoder = HashingEncoder(dimension=24)
    flat = flat_index(tmp_path / "given.index", encoder.encode_passages([passage.contents for passage in PASSAGES]))
    taken = build_dense(tmp_path / "taken", PASSAGES, encoder, vectors=flat)
    encoded = build_dense(tmp_path / "encoded", PASSAGES, encoder, storage="float32")
    assert taken.search(QUERIES, 10) == encoded.search(QUERIES, 10)
    assert taken.identity == encoded.identity
    assert (tmp_path / "taken" / "index" / "vectors.faiss").resolve() == flat
    assert not (tmp_path / "taken" / "index" / "vectors.bin").exists()


@pytest.mark.parametrize("storage", STORAGES)
def test_a_flat_index_can_be_stored_in_other_numbers(tmp_path: Path, storage: Storage) -> None:
    encoder = HashingEncoder()
    flat = flat_index(tmp_path / "given.index", encoder.encode_passages([passage.contents for passage in PASSAGES]))
    build_dense(tmp_path / "taken", PASSAGES, encoder, vectors=flat, storage=storage)
    build_dense(tmp_path / "encoded", PASSAGES, encoder, storage=storage)
    vectors = [(tmp_path / name / "index" / "vectors.bin").read_bytes() for name in ("taken", "encoded")]
    assert vectors[0] == vectors[1]


def test_flat_indexes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    encoder = HashingEncoder()
    corpus = write_corpus(tmp_path / "corpus.jsonl", PASSAGES[:20])
    right = encoder.encode_passages([passage.contents for passage in PASSAGES[:20]])
    spoilt = right.copy()
    spoilt[7, 3] = np.nan
    short = flat_index(tmp_path / "short", right)
    short.write_bytes(short.read_bytes()[:-1])
    (tmp_path / "text").write_text("IxFI but not really")
    for file, fault in {
        flat_index(tmp_path / "fewer", right[:19]): "holds 19 vectors, the corpus 20 passages",
        flat_index(tmp_path / "narrow", right[:, :31].copy()): "its vectors have 31 numbers, those of hashing-plain have 32",
        flat_index(tmp_path / "distances", right, faiss.METRIC_L2): "is a flat index of distances",
        flat_index(
            tmp_path / "order", right[::-1].copy()
        ): r"order: the vector of passage 'p\d+' \(row 0\) is not what hashing-plain",
        flat_index(tmp_path / "other", HashingEncoder(seed="x").encode_passages(["a"] * 20)): "is not what hashing-plain makes",
        flat_index(tmp_path / "spoilt", spoilt): "vector 7 holds NaN or infinity",
        short: r"has 2604 bytes, 2605 are needed for its 20 vectors of 32 numbers",
        corpus: "is no FAISS flat index",
        tmp_path / "text": "is no FAISS flat index",
        tmp_path / "nowhere": "no such file",
    }.items():
        with pytest.raises(UserError, match=fault):
            DenseIndex.build(corpus, tmp_path / "index", encoder, options=DenseOptions(vectors=file))
        assert not list(tmp_path.glob("*index*"))


def test_a_build_that_fails_at_its_faiss_index_does_not_encode_again(tmp_path: Path) -> None:
    encoder = HashingEncoder(dimension=30)
    with pytest.raises(UserError, match="multiple of 4"):
        build_dense(tmp_path, PASSAGES[:50], encoder, search="ivf")
    encoder.encoded.clear()
    build_dense(tmp_path, PASSAGES[:50], encoder, search="sq8")
    assert sum(encoder.encoded) == 3


def test_a_recall_that_is_not_reached_ends_the_build_and_keeps_the_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = HashingEncoder()
    with monkeypatch.context() as patch:
        patch.setattr("searchparty.retrieval.dense.recall.recall", lambda *_: 0.5)
        with pytest.raises(UserError, match=r"hnsw: finds 0\.500 of the 10 best at its greatest effort, 0\.95 is asked for"):
            build_dense(tmp_path, PASSAGES[:50], encoder, search="hnsw")
    assert not (tmp_path / "index").exists()
    encoder.encoded.clear()
    exact = build_dense(tmp_path, PASSAGES[:50], encoder)
    assert sum(encoder.encoded) == 3, "only the passages that are looked at when an index is opened"
    assert "faiss.index" not in exact.manifest.files
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.jsonl", "index"]
