"""A Qdrant collection in local mode, held against the BM25 index over the same corpus."""

from __future__ import annotations

from pathlib import Path

import pytest
from retrieval_factories import DATA, ids, passages_of, write_corpus
from stub_server import Reply, stub_server

from searchparty.errors import FailureKind, ServiceFailure, UserError
from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.opening import open_retriever
from searchparty.retrieval.retrying import Patience
from searchparty.retrieval.stores.filling import fill_store
from searchparty.retrieval.stores.opening import open_store, open_store_retriever
from searchparty.retrieval.stores.store import StoreManifest, StoreRetriever
from searchparty.retrieval.types import Passage

pytest.importorskip("qdrant_client")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> str:
    address = f"qdrant+file:{tmp_path_factory.mktemp('qdrant') / 'folder'}/passages"
    store = open_store(address)
    fill_store(DATA / "passages.jsonl", store, address)
    store.close()
    return address


def test_hits_and_scores_are_those_of_the_bm25_index(filled: str, tmp_path: Path) -> None:
    index = BM25Index.build(DATA / "passages.jsonl", tmp_path / "index")
    queries = [*(DATA / "queries.txt").read_text(encoding="utf-8").splitlines(), "zzzunknown", "", "the of"]
    retriever = open_retriever(filled)
    for mine, theirs in zip(index.search(queries, 5), retriever.search(queries, 5), strict=True):
        assert [hit.passage for hit in theirs] == [hit.passage for hit in mine]
        assert [hit.score for hit in theirs] == pytest.approx([hit.score for hit in mine], rel=1e-4)
    assert index.manifest.passages_sha256[:16] in retriever.identity
    retriever.close()  # type: ignore[attr-defined]


def test_equal_scores_come_in_corpus_order(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", passages_of(*["same words"] * 9, "different text"))
    address = f"qdrant+file:{tmp_path}/folder/passages"
    store = open_store(address)
    fill_store(corpus, store, address)
    retriever = StoreRetriever(store, address)
    assert ids(retriever.search(["same"], 4)[0]) == ["p0", "p1", "p2", "p3"]
    assert len(retriever.search(["same"], 100)[0]) == 9
    with pytest.raises(ValueError, match="k must be at least 1"):
        retriever.search(["same"], 0)
    retriever.close()


def test_a_passage_without_words_is_kept_and_not_found(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", passages_of("the of", "words"))
    address = f"qdrant+file:{tmp_path}/folder/passages"
    store = open_store(address)
    assert fill_store(corpus, store, address).passages == 2
    assert ids(StoreRetriever(store, address).search(["words of"], 5)[0]) == ["p1"]
    store.close()


def test_a_collection_that_is_missing_unfinished_or_not_ours_is_not_opened(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", passages_of("words"))
    address = f"qdrant+file:{tmp_path}/folder/passages"
    with pytest.raises(UserError, match="no such folder"):
        open_store_retriever(address)
    assert not (tmp_path / "folder").exists()
    store = open_store(address)
    with pytest.raises(UserError, match="no such collection"):
        StoreRetriever(store, address)
    manifest = fill_store(corpus, store, address)
    with pytest.raises(UserError, match="already exists"):
        fill_store(corpus, store, address)
    store.delete()
    store.create(manifest.model_copy(update={"complete": False}))
    with pytest.raises(UserError, match="not filled to the end"):
        StoreRetriever(store, address)
    assert fill_store(corpus, store, address, overwrite=True).complete
    store.delete()
    store._client.create_collection("passages", vectors_config={})  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="was not filled by this program"):
        fill_store(corpus, store, address, overwrite=True)
    store.close()


def test_a_local_folder_that_is_open_elsewhere_is_a_user_error(filled: str) -> None:
    store = open_store(filled)
    with pytest.raises(UserError, match="cannot be opened"):
        open_store(filled)
    store.close()


def test_a_server_that_is_down_is_unreachable() -> None:
    with pytest.raises(ServiceFailure) as caught:
        open_store_retriever("qdrant+http://127.0.0.1:9/wiki", Patience(attempts=2, pause=0.01))
    assert (caught.value.failure.kind, caught.value.failure.attempts) == (FailureKind.UNREACHABLE, 2)


@pytest.mark.parametrize(
    ("passages", "fault"),
    [
        (
            [Passage("a", "", "x"), Passage("b", "", "x"), Passage("a", "", "y")],
            ":3: passage id 'a' was already used on line 1",
        ),
        ([Passage("a", "", "the of")], "no passage holds a word"),
    ],
)
def test_a_faulty_corpus_leaves_no_collection(tmp_path: Path, passages: list[Passage], fault: str) -> None:
    address = f"qdrant+file:{tmp_path}/folder/passages"
    store = open_store(address)
    with pytest.raises(UserError, match=fault):
        fill_store(write_corpus(tmp_path / "corpus", passages), store, address)
    assert store.metadata() is None
    with pytest.raises(UserError, match="b from 0 to 1"):
        fill_store(tmp_path / "corpus", store, address, b=2)
    store.close()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(503), FailureKind.SERVER_ERROR),
        (Reply(401, b"no"), FailureKind.REJECTED),
        (Reply(body=b"<html>"), FailureKind.MALFORMED_REPLY),
        (Reply(body=b'{"result": "text"}'), FailureKind.MALFORMED_REPLY),
        (Reply(hang_up=True), FailureKind.UNREACHABLE),
        (Reply(body=b"{}", delay=3), FailureKind.TIMEOUT),
    ],
)
def test_troubles_of_a_server_are_typed_failures(reply: Reply, kind: FailureKind) -> None:
    with stub_server(reply) as stub:
        address = f"qdrant+{stub.url}/wiki"
        store = open_store(address, Patience(attempts=1, timeout=1), token="s3cret")
        manifest = StoreManifest(
            retriever="qdrant-bm25", settings={}, corpus="c", passages=9, passages_sha256="0" * 64, complete=True
        )
        with pytest.raises(ServiceFailure) as caught:
            store.search(manifest, ["words"], 3)
        store.close()
    assert caught.value.failure.kind is kind
    assert "s3cret" not in str(caught.value)
