"""OpenSearch and Elasticsearch through their own clients, against a stand-in that speaks their HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lucene_stub import LuceneStub, lucene_stub
from retrieval_factories import ids, passages_of, write_corpus

from searchparty.cli.main import main
from searchparty.errors import FailureKind, ServiceFailure, UserError
from searchparty.retrieval.opening import open_retriever
from searchparty.retrieval.retrying import Patience
from searchparty.retrieval.stores.filling import fill_store
from searchparty.retrieval.stores.opening import open_store, open_store_retriever
from searchparty.retrieval.types import Hit, Passage

pytest.importorskip("opensearchpy")
pytest.importorskip("elasticsearch")

TEXTS = passages_of("red apple", "green apple", "red pear tree", "apple tree", "nothing else")
PATIENCE = Patience(attempts=2, pause=0.01, timeout=10)


@pytest.fixture
def stub() -> Iterator[LuceneStub]:
    with lucene_stub() as stub:
        yield stub


@pytest.fixture(params=["opensearch", "elasticsearch"])
def address(request: pytest.FixtureRequest, stub: LuceneStub) -> str:
    return f"{request.param}+{stub.url}/fruit"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "fruit.jsonl", TEXTS)


def fill(corpus: Path, address: str, **options: bool) -> None:
    store = open_store(address, PATIENCE)
    fill_store(corpus, store, address, **options)
    store.close()


def test_what_was_put_in_is_found_best_first_and_ties_in_corpus_order(corpus: Path, address: str) -> None:
    fill(corpus, address)
    retriever = open_retriever(address)
    assert [ids(hits) for hits in retriever.search(["red apple", "tree", "zzz"], 3)] == [["p0", "p1", "p2"], ["p2", "p3"], []]
    assert retriever.search(["green"], 1) == [[Hit(Passage("p1", "", "green apple"), 1, 1.0)]]
    assert retriever.search([], 3) == []


def test_several_queries_are_one_request_whose_scores_do_not_depend_on_shards(
    corpus: Path, address: str, stub: LuceneStub
) -> None:
    fill(corpus, address)
    open_retriever(address).search(["red", "tree"], 10_000)
    [(parameters, searches)] = stub.searches
    assert parameters["search_type"] == ["dfs_query_then_fetch"]
    assert [search["size"] for search in searches] == [5, 5], "no more than there are passages"
    assert all(search["sort"] == [{"_score": "desc"}, {"row": "asc"}] for search in searches)


def test_the_index_has_bm25_with_the_settings_that_were_named(corpus: Path, address: str, stub: LuceneStub) -> None:
    store = open_store(address, PATIENCE)
    manifest = fill_store(corpus, store, address, k1=1.2, b=0.75)
    made = stub.indices["fruit"]
    assert made["settings"]["index"]["similarity"] == {"passages": {"type": "BM25", "k1": 1.2, "b": 0.75}}
    assert made["mappings"]["properties"]["contents"] == {"type": "text", "analyzer": "english", "similarity": "passages"}
    assert "k1=1.2" in manifest.identity and open_retriever(address).identity == manifest.identity


def test_only_the_first_thousand_words_of_a_query_are_sent(corpus: Path, address: str, stub: LuceneStub) -> None:
    fill(corpus, address)
    open_retriever(address).search(["word " * 10_000], 3)
    assert len(stub.searches[0][1][0]["query"]["match"]["contents"].split()) == 1000


def test_an_existing_index_is_kept_unless_told_otherwise(corpus: Path, address: str, stub: LuceneStub) -> None:
    fill(corpus, address)
    with pytest.raises(UserError, match="already exists"):
        fill(corpus, address)
    fill(corpus, address, overwrite=True)
    stub.indices["fruit"]["mappings"]["_meta"] = {"someone": "else's"}
    with pytest.raises(UserError, match="was not filled by this program"):
        fill(corpus, address, overwrite=True)
    assert "fruit" in stub.indices


def test_an_index_that_is_missing_unfinished_or_of_another_version_is_not_opened(
    corpus: Path, address: str, stub: LuceneStub
) -> None:
    with pytest.raises(UserError, match="no such collection"):
        open_retriever(address)
    fill(corpus, address)
    manifest = stub.indices["fruit"]["mappings"]["_meta"]["searchparty"]
    for changes, fault in (
        ({"complete": False}, "not filled to the end"),
        ({"format": 9}, "version 9"),
        ({"settings": {"k1": 0.9, "b": 0.4, "analyzer": "german"}}, "other settings"),
        ({"settings": {}}, "other settings"),
        ({"passages": "many"}, "damaged"),
    ):
        stub.indices["fruit"]["mappings"]["_meta"] = {"searchparty": {**manifest, **changes}}
        with pytest.raises(UserError, match=fault):
            open_retriever(address)


@pytest.mark.parametrize(
    ("status", "kind", "attempts"),
    [
        (503, FailureKind.SERVER_ERROR, 2),
        (429, FailureKind.RATE_LIMITED, 2),
        (400, FailureKind.REJECTED, 1),
        (401, FailureKind.REJECTED, 1),
        (404, FailureKind.REJECTED, 1),
    ],
)
def test_troubles_are_typed_failures(
    corpus: Path, address: str, stub: LuceneStub, status: int, kind: FailureKind, attempts: int
) -> None:
    fill(corpus, address)
    retriever = open_store_retriever(address, PATIENCE)
    stub.troubles = [(status, {"error": {"type": "x", "reason": "because"}, "status": status})] * attempts
    with pytest.raises(ServiceFailure) as caught:
        retriever.search(["red"], 3)
    assert (caught.value.failure.kind, caught.value.failure.attempts, stub.troubles) == (kind, attempts, [])
    assert retriever.search(["red"], 3)[0]


def test_a_passing_trouble_is_tried_again(corpus: Path, address: str, stub: LuceneStub) -> None:
    fill(corpus, address)
    stub.troubles = [(503, {})]
    assert ids(open_store_retriever(address, PATIENCE).search(["green"], 3)[0]) == ["p1"]


def test_a_search_that_only_a_part_of_the_index_answered_is_no_answer(corpus: Path, address: str, stub: LuceneStub) -> None:
    fill(corpus, address)
    retriever = open_store_retriever(address, PATIENCE)
    hits: dict[str, object] = {"hits": {"hits": []}, "status": 200}
    for reply in ({**hits, "timed_out": True}, {**hits, "_shards": {"failed": 1}}, {"error": {"reason": "no"}, "status": 500}):
        stub.troubles = [(200, {"responses": [reply]})] * 2
        with pytest.raises(ServiceFailure, match="server_error"):
            retriever.search(["red"], 3)


@pytest.mark.parametrize(
    "reply",
    [{}, {"responses": []}, {"responses": ["text"]}, {"responses": [{"hits": {"hits": [{"_score": None, "_source": {}}]}}]}],
)
def test_a_reply_in_another_form_is_malformed(corpus: Path, address: str, stub: LuceneStub, reply: object) -> None:
    fill(corpus, address)
    retriever = open_store_retriever(address, PATIENCE)
    stub.troubles = [(200, reply)]
    with pytest.raises(ServiceFailure, match="malformed_reply"):
        retriever.search(["red"], 3)


def test_a_document_that_was_refused_ends_the_filling(corpus: Path, address: str, stub: LuceneStub) -> None:
    store = open_store(address, PATIENCE)
    fill_store(corpus, store, address)

    def refuse(method: str, path: str, body: bytes) -> tuple[int, object]:
        if "_bulk" in path:
            return 200, {"errors": True, "items": [{"index": {"status": 400, "error": {"reason": "too large"}}}]}
        return LuceneStub.answer(stub, method, path, body)

    stub.answer = refuse  # type: ignore[method-assign]
    with pytest.raises(ServiceFailure, match="too large"):
        fill_store(corpus, store, address, overwrite=True)
    with pytest.raises(UserError, match="not filled to the end"):
        open_retriever(address)


def test_the_token_is_sent_and_never_shown(corpus: Path, stub: LuceneStub) -> None:
    for kind, token, sent in (
        ("opensearch", "user:s3cret", "Basic dXNlcjpzM2NyZXQ="),
        ("elasticsearch", "s3cret", "ApiKey s3cret"),
    ):
        stub.troubles = [(401, {"error": {"reason": f"not {token}"}, "status": 401})]
        with pytest.raises(ServiceFailure) as caught:
            open_store_retriever(f"{kind}+{stub.url}/fruit", PATIENCE, token)
        assert sent in stub.authorizations
        assert "s3cret" not in str(caught.value)
    with pytest.raises(UserError, match="user:password"):
        open_store(f"opensearch+{stub.url}/fruit", PATIENCE, "s3cret")


def test_a_server_that_is_down_is_unreachable() -> None:
    for kind in ("opensearch", "elasticsearch"):
        with pytest.raises(ServiceFailure, match="unreachable"):
            open_store_retriever(f"{kind}+http://127.0.0.1:9/fruit", PATIENCE)


def test_the_command_fills_and_describes(corpus: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "fill", str(corpus), address]) == 0
    assert capsys.readouterr().out.startswith(f"{address}: 5 passages in ")
    assert main(["store", "info", address]) == 0
    assert json.loads(capsys.readouterr().out)["passages"] == 5
    assert main(["search", address, "green"]) == 0
    assert "[p1]" in capsys.readouterr().out
    assert main(["store", "fill", str(corpus), address]) == 2
