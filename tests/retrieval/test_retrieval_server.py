"""The server over a real socket, asked in all the ways that clients of Search-R1's dialect have."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from retrieval_factories import DATA, FunctionRetriever, build, ids
from running_server import running

from searchparty.errors import Failure, FailureKind, ServiceFailure, UserError
from searchparty.http_server.asgi import RequestError
from searchparty.http_server.listening import bind
from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.dialects import DIALECTS
from searchparty.retrieval.remote import RemoteRetriever
from searchparty.retrieval.server import Limits
from searchparty.retrieval.types import Hit, Passage
from searchparty.retrieval.wire import PATHS, parse_request


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> BM25Index:
    return BM25Index.build(DATA / "passages.jsonl", tmp_path_factory.mktemp("server") / "index")


@pytest.fixture(scope="module")
def queries() -> list[str]:
    return (DATA / "queries.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def client(index: BM25Index) -> Iterator[httpx.Client]:
    with running(index, len(index)) as address, httpx.Client(base_url=address, trust_env=False) as client:
        yield client


def retrieve(client: httpx.Client, **request: Any) -> list[list[Any]]:
    response = client.post("/retrieve", json=request)
    assert response.status_code == 200, response.text
    return list(response.json()["result"])


@pytest.mark.parametrize("count", [1, 2, 3, 24])
def test_scored_documents_come_for_any_number_of_queries(
    client: httpx.Client, index: BM25Index, queries: list[str], count: int
) -> None:
    result = retrieve(client, queries=queries[:count], topk=4, return_scores=True)
    expected = index.search(queries[:count], 4)
    assert result == [
        [{"document": {"id": hit.passage.id, "contents": hit.passage.contents}, "score": hit.score} for hit in hits]
        for hits in expected
    ]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("scores", [{"return_scores": False}, {}, {"return_scores": None}])
def test_bare_documents_come_without_scores(
    client: httpx.Client, index: BM25Index, queries: list[str], count: int, scores: dict[str, Any]
) -> None:
    result = retrieve(client, queries=queries[:count], topk=4, **scores)
    assert result == [
        [{"id": hit.passage.id, "contents": hit.passage.contents} for hit in hits] for hits in index.search(queries[:count], 4)
    ]


def test_contents_are_the_quoted_title_line_and_the_text(client: httpx.Client, index: BM25Index, queries: list[str]) -> None:
    [[first, *_]] = retrieve(client, queries=queries[:1], return_scores=True)
    title, text = first["document"]["contents"].split("\n", 1)
    [[hit, *_]] = index.search(queries[:1], 1)
    assert (title, text) == (f'"{hit.passage.title}"', hit.passage.text)


@pytest.mark.parametrize("request_topk", [{"topk": None}, {"topk": 0}, {}])
def test_the_default_number_of_hits_is_used_where_none_is_named(
    client: httpx.Client, queries: list[str], request_topk: dict[str, Any]
) -> None:
    [documents] = retrieve(client, queries=queries[:1], **request_topk)
    assert len(documents) == 3


@pytest.mark.parametrize("topk", [221, 10_000, 10**9])
def test_more_hits_than_passages_may_be_asked_for(
    client: httpx.Client, index: BM25Index, queries: list[str], topk: int
) -> None:
    [documents] = retrieve(client, queries=queries[:1], topk=topk)
    assert [document["id"] for document in documents] == ids(index.search(queries[:1], len(index))[0])


def test_a_query_without_a_known_word_and_no_queries_give_empty_lists(client: httpx.Client) -> None:
    assert retrieve(client, queries=["zzzunknown", ""], return_scores=True) == [[], []]
    assert retrieve(client, queries=[]) == []


def test_health_names_the_passages_and_the_retriever(client: httpx.Client, index: BM25Index) -> None:
    assert client.get("/health").json() == {"status": "ok", "passages": 220, "identity": index.identity}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"queries": "one string"}',
        b'{"queries": ["a", 3]}',
        b'{"queries": ["a"], "topk": -1}',
        b'{"queries": ["a"], "topk": 2.5}',
        b'{"queries": ["a"], "topk": "3"}',
        b'{"queries": ["a"], "topk": true}',
        b'{"queries": ["a"], "topk": 1e999}',
        b'{"queries": ["a"], "return_scores": "yes"}',
        b'{"queries": ["\xff"]}',
        b'{"queries": ["\\ud800"]}',
    ],
)
def test_a_bad_request_is_answered_with_400_and_one_line(client: httpx.Client, body: bytes) -> None:
    response = client.post("/retrieve", content=body)
    assert response.status_code == 400
    assert list(response.json()) == ["error"]
    assert "\n" not in response.json()["error"]


def test_a_request_for_too_many_documents_is_refused(client: httpx.Client) -> None:
    response = client.post("/retrieve", json={"queries": ["a"] * 1000, "topk": 1000})
    assert (response.status_code, "ask for less" in response.json()["error"]) == (400, True)


def test_unknown_paths_and_methods_are_refused(client: httpx.Client) -> None:
    assert client.get("/nowhere").status_code == 404
    assert client.post("/").status_code == 404
    for method, path, allowed in (("GET", "/retrieve", "POST"), ("POST", "/health", "GET"), ("DELETE", "/health", "GET")):
        response = client.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, allowed)


def test_a_body_that_is_too_long_is_refused(client: httpx.Client) -> None:
    too_long = b" " * (Limits().body_bytes + 1)
    assert client.post("/retrieve", content=too_long).status_code == 413
    assert client.post("/retrieve", content=iter([too_long])).status_code == 413
    assert client.get("/health").status_code == 200


def test_concurrent_requests_each_get_their_own_answer(client: httpx.Client, index: BM25Index, queries: list[str]) -> None:
    expected = {query: ids(hits) for query, hits in zip(queries, index.search(queries, 5), strict=True)}

    def ask(query: str) -> list[str]:
        return [document["id"] for document in retrieve(client, queries=[query], topk=5)[0]]

    with ThreadPoolExecutor(32) as pool:
        asked = queries * 8
        assert list(pool.map(ask, asked)) == [expected[query] for query in asked]


def test_the_client_of_this_package_gets_what_the_index_gives(
    client: httpx.Client, index: BM25Index, queries: list[str]
) -> None:
    remote = RemoteRetriever(str(client.base_url))
    assert remote.search(queries, 5) == index.search(queries, 5)
    assert remote.identity == f"remote({str(client.base_url).rstrip('/')}): {index.identity}"


def test_the_client_of_search_r1_reads_the_replies(client: httpx.Client, queries: list[str]) -> None:
    for batch in (queries[:1], queries[:2], queries):
        for documents in retrieve(client, queries=batch, topk=3, return_scores=True):
            for item in documents:
                content = item["document"]["contents"]
                title, text = content.split("\n")[0], "\n".join(content.split("\n")[1:])
                assert title.startswith('"') and title.endswith('"') and text


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("count", [1, 2, 24])
def test_every_dialect_of_the_client_is_spoken(
    client: httpx.Client, index: BM25Index, queries: list[str], dialect: str, count: int
) -> None:
    asked = [*queries[:count], "zzzunknown"]
    found = RemoteRetriever(str(client.base_url), dialect=dialect).search(asked, 4)
    expected = index.search(asked, 4)
    assert [[(hit.passage.title, hit.passage.text) for hit in hits] for hits in found] == [
        [(hit.passage.title, hit.passage.text) for hit in hits] for hits in expected
    ]
    if dialect not in ("questions", "queries"):
        assert found == expected


@pytest.mark.parametrize(
    ("path", "body", "reply"),
    [
        ("/retrieve", {"query": "x", "topk": 1}, {"result": [[{"id": "x", "contents": '"x"\nabout x, k=1'}]]}),
        ("/search", {"questions": ["x"], "N": 1}, [{"question": "x", "top_k_docs": ["x\nabout x, k=1"]}]),
        ("/batch_search", {"query": ["x"], "top_n": 1}, [[{"id": "x", "contents": '"x"\nabout x, k=1'}]]),
        (
            "/batch_search",
            {"query": ["x"], "top_n": 1, "return_score": True},
            [[[{"id": "x", "contents": '"x"\nabout x, k=1'}]], [[1.0]]],
        ),
        ("/batch_search", {"query": [], "return_score": True}, [[], []]),
        (
            "/queries",
            {"queries": ["7", "x"], "k": 1},
            {"queries": ["7", "x"], "answers": [["7\t7\nabout 7, k=1"], ["x\nabout x, k=1"]]},
        ),
    ],
)
def test_the_other_dialects_are_answered_as_their_clients_read_them(path: str, body: dict[str, Any], reply: Any) -> None:
    with running(FunctionRetriever(), 9) as address:
        assert httpx.post(f"{address}{path}", json=body, trust_env=False).json() == reply


@pytest.mark.parametrize("count", [1, 2, 24])
@pytest.mark.parametrize("scores", [True, False])
def test_a_stock_client_on_requests_works_as_it_is(
    client: httpx.Client, index: BM25Index, queries: list[str], count: int, scores: bool
) -> None:
    payload = {"queries": queries[:count], "topk": 3, "return_scores": scores}
    replies = requests.post(f"{str(client.base_url).rstrip('/')}/retrieve", json=payload).json()["result"]
    documents = [[item["document"] if scores else item for item in reply] for reply in replies]
    assert [[document["id"] for document in found] for found in documents] == [
        ids(hits) for hits in index.search(queries[:count], 3)
    ]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(title=st.text(), text=st.text())
def test_any_unicode_text_comes_through_server_and_client(
    shared_text_server: tuple[RemoteRetriever, list[Passage]], title: str, text: str
) -> None:
    remote, served = shared_text_server
    served[:] = [Passage("id", title.replace("\n", " "), text)]
    [[hit]] = remote.search([text], 1)
    assert hit.passage == served[0]


@pytest.fixture(scope="module")
def shared_text_server() -> Iterator[tuple[RemoteRetriever, list[Passage]]]:
    served: list[Passage] = []

    class Fixed:
        identity = "fixed"

        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            return [[Hit(passage, 1, 1.0) for passage in served] for _ in queries]

    with running(Fixed(), 1, limits=Limits(memory_bytes=0)) as address:
        yield RemoteRetriever(address), served


@pytest.mark.parametrize(
    ("kind", "status"),
    [(FailureKind.TIMEOUT, 504), (FailureKind.UNREACHABLE, 502), (FailureKind.SERVER_ERROR, 500), (FailureKind.REJECTED, 500)],
)
def test_a_failure_behind_the_server_is_an_error_and_not_an_empty_result(kind: FailureKind, status: int) -> None:
    def fail(queries: Sequence[str]) -> None:
        raise ServiceFailure(Failure("retriever", kind, "two\nlines"))

    with running(FunctionRetriever(fail), 1) as address:
        response = httpx.post(f"{address}/retrieve", json={"queries": ["q"]}, trust_env=False)
        assert response.status_code == status
        assert "\n" not in response.json()["error"]


def test_running_requests_are_finished_when_the_server_stops(tmp_path: Path) -> None:
    started, proceed = threading.Event(), threading.Event()

    def wait(queries: Sequence[str]) -> None:
        started.set()
        assert proceed.wait(10)

    with ThreadPoolExecutor(1) as pool:
        with running(FunctionRetriever(wait), 1) as address:
            reply = pool.submit(httpx.post, f"{address}/retrieve", json={"queries": ["q"]}, trust_env=False, timeout=10)
            assert started.wait(10)
            threading.Timer(0.2, proceed.set).start()
        assert json.loads(reply.result().content)["result"][0][0]["id"] == "q"


def test_a_port_in_use_is_a_user_error() -> None:
    with bind("127.0.0.1", 0) as taken, pytest.raises(UserError, match="port is in use"):
        bind("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(("host", "port"), [("no..host", 0), ("127.0.0.1", 70_000), ("203.0.113.1", 0)])
def test_an_impossible_address_is_a_user_error(host: str, port: int) -> None:
    with pytest.raises(UserError, match=f"--host {host} --port {port}"):
        bind(host, port)


@given(st.sampled_from(PATHS), st.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_request_error(path: str, body: bytes) -> None:
    try:
        request = parse_request(path, body, 3, 10)
    except RequestError as error:
        assert error.status == 400
    else:
        assert 1 <= request.k <= 10


def test_an_index_of_one_passage_is_served(tmp_path: Path) -> None:
    index = build(tmp_path, [Passage("only", "Title", "lonely words")])
    with running(index, len(index)) as address:
        assert ids(RemoteRetriever(address).search(["lonely"], 3)[0]) == ["only"]
