"""What the server refuses, gives up, counts and remembers."""

from __future__ import annotations

import mmap
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from retrieval_factories import FunctionRetriever
from running_server import running

from searchparty.errors import Failure, FailureKind, ServiceFailure
from searchparty.http_server import asgi
from searchparty.retrieval.memo import Memo
from searchparty.retrieval.metrics import Metrics, shared_bytes
from searchparty.retrieval.remote import RemoteRetriever
from searchparty.retrieval.retrying import Patience
from searchparty.retrieval.server import Limits
from searchparty.retrieval.types import Hit, Passage


class Gate:
    """Holds every search until it is opened."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, queries: Sequence[str]) -> None:
        self.reached.set()
        assert self.open.wait(20)


@contextmanager
def client_of(address: str, **options: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, trust_env=False, timeout=20, **options) as client:
        yield client


def metrics(client: httpx.Client) -> dict[str, float]:
    """Every sample by its name and labels."""
    reply = client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = re.findall(r'^(searchparty_\w+(?:\{\w+="[^"]*"\})?) (\S+)$', reply.text, re.MULTILINE)
    assert len(samples) == len([line for line in reply.text.splitlines() if not line.startswith("#")])
    return {name.removeprefix("searchparty_"): float(value) for name, value in samples}


def eventually(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_native_form_carries_passages_in_full() -> None:
    with running(FunctionRetriever(), 9) as address, client_of(address) as client:
        for body in ({"version": 1, "queries": ["x", "y"], "k": 2}, {"queries": ["x", "y"], "k": 2}):
            assert client.post("/search", json=body).json() == {
                "version": 1,
                "results": [
                    [{"id": query, "title": query, "text": f"about {query}, k=2", "score": 1.0}] for query in ("x", "y")
                ],
            }


def test_the_native_client_gets_what_the_retriever_gives() -> None:
    retriever = FunctionRetriever()
    with running(retriever, 9) as address:
        remote = RemoteRetriever(address, dialect="native")
        assert remote.search(["x", "y", "x"], 2) == retriever.search(["x", "y", "x"], 2)


@pytest.mark.parametrize(
    "body", [{"queries": ["x"], "version": 2}, {"queries": ["x"], "topk": 3}, {"queries": ["x"], "k": "3"}, {"query": "x"}]
)
def test_a_native_request_of_another_version_or_with_unknown_fields_is_refused(body: dict[str, Any]) -> None:
    with running(FunctionRetriever(), 9) as address, client_of(address) as client:
        assert client.post("/search", json=body).status_code == 400


def test_without_the_token_nothing_but_health_is_answered() -> None:
    with running(FunctionRetriever(), 9, token="s3cret") as address, client_of(address) as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}):
            for method, path in (("POST", "/retrieve"), ("POST", "/search"), ("GET", "/metrics"), ("GET", "/nowhere")):
                reply = client.request(method, path, headers=headers, json={"queries": ["x"]})
                assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert client.get("/health").status_code == 200
        with pytest.raises(ServiceFailure, match="HTTP 401"):
            RemoteRetriever(address).search(["x"], 3)
        assert RemoteRetriever(address, token="s3cret").search(["x"], 3)[0][0].passage.id == "x"


def test_more_requests_than_may_wait_are_sent_away_and_come_again() -> None:
    gate = Gate()
    with running(FunctionRetriever(gate), 9, limits=Limits(waiting=2)) as address, client_of(address) as client:
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(client.post, "/retrieve", json={"queries": [name]}) for name in ("a", "b")]
            eventually(lambda: metrics(client)["waiting_requests"] == 2)
            refused = client.post("/retrieve", json={"queries": ["c"]})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert client.get("/health").status_code == 200
            gate.open.set()
            assert [reply.result().status_code for reply in waiting] == [200, 200]
        assert client.post("/retrieve", json={"queries": ["c"]}).status_code == 200
        assert metrics(client)['errors_total{kind="overloaded"}'] == 1
        eventually(lambda: metrics(client)["waiting_requests"] == 0)


def test_many_requests_at_once_are_all_answered_or_sent_away() -> None:
    def slowly(queries: Sequence[str]) -> None:
        time.sleep(0.01)

    with running(FunctionRetriever(slowly), 9, limits=Limits(waiting=8)) as address, ThreadPoolExecutor(64) as pool:
        remote = RemoteRetriever(address, patience=Patience(attempts=1, break_after=0))

        def ask(number: int) -> str:
            try:
                return remote.search([f"q{number}"], 1)[0][0].passage.id
            except ServiceFailure as error:
                assert error.failure.detail.startswith(f"{address}: HTTP 503")
                return "sent away"

        answers = list(pool.map(ask, range(600)))
        assert {answer for number, answer in enumerate(answers) if answer != f"q{number}"} <= {"sent away"}
        assert answers.count("sent away") < 600


def test_a_patient_client_comes_through_an_overloaded_server() -> None:
    with running(FunctionRetriever(lambda queries: time.sleep(0.05)), 9, limits=Limits(waiting=1)) as address:
        remote = RemoteRetriever(address, patience=Patience(attempts=10, timeout=60))
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda query: remote.search([query], 1)[0][0].passage.id, ["a", "b", "c"]))
    assert found == ["a", "b", "c"]


def test_a_body_longer_than_the_limit_is_refused_and_counted() -> None:
    with running(FunctionRetriever(), 9, limits=Limits(body_bytes=1000)) as address, client_of(address) as client:
        for path in ("/retrieve", "/search"):
            assert client.post(path, content=b" " * 1001).status_code == 413
            assert client.post(path, content=iter([b" " * 600] * 2)).status_code == 413
        assert metrics(client)['errors_total{kind="too_large"}'] == 4


def test_bodies_are_bounded_together_and_let_go() -> None:
    with running(FunctionRetriever(), 9) as address, client_of(address) as client:
        large = b'{"queries": ["%s"]}' % (b"x" * (15 * 1024 * 1024))
        assert [client.post("/retrieve", content=large).status_code for _ in range(20)] == [200] * 20


def test_a_body_that_never_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "READING_SECONDS", 0.2)
    with running(FunctionRetriever(), 9) as address, client_of(address) as client:
        with raw_request(address, b"", length=100) as connection:
            assert connection.recv(1000).startswith(b"HTTP/1.1 408")
        assert metrics(client)["waiting_requests"] == 0


@contextmanager
def raw_request(address: str, body: bytes, length: int | None = None) -> Iterator[socket.socket]:
    target = urlsplit(address)
    with socket.create_connection((target.hostname, target.port), timeout=10) as connection:
        head = f"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n"
        connection.sendall(head.encode() + body)
        yield connection


def test_a_search_that_has_not_begun_is_dropped_when_its_client_disconnects() -> None:
    gate = Gate()
    retriever = FunctionRetriever(gate)
    with running(retriever, 9) as address, client_of(address) as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/retrieve", json={"queries": ["first"]})
        assert gate.reached.wait(10)
        with raw_request(address, b'{"queries": ["abandoned"]}'):
            eventually(lambda: metrics(client)["waiting_requests"] == 2)
        eventually(lambda: metrics(client)["waiting_requests"] == 1)
        gate.open.set()
        assert first.result().status_code == 200
        assert client.post("/retrieve", json={"queries": ["last"]}).status_code == 200
        assert retriever.batches == [["first"], ["last"]]
        assert metrics(client)['errors_total{kind="disconnected"}'] == 1


def test_a_client_that_leaves_in_the_middle_of_its_body_is_counted() -> None:
    with running(FunctionRetriever(), 9) as address, client_of(address) as client:
        with raw_request(address, b'{"queries"', length=100):
            eventually(lambda: metrics(client)["waiting_requests"] == 1)
        eventually(lambda: metrics(client)['errors_total{kind="disconnected"}'] == 1)
        assert metrics(client)["waiting_requests"] == 0


def test_requests_queries_errors_latency_and_batches_are_counted() -> None:
    def fail(queries: Sequence[str]) -> None:
        if "bad" in queries:
            raise ServiceFailure(Failure("retriever", FailureKind.TIMEOUT, "slow"))

    with running(FunctionRetriever(fail), 9) as address, client_of(address) as client:
        client.post("/retrieve", json={"queries": ["a", "b", "c"]})
        client.post("/search", json={"queries": ["a"]})
        client.post("/retrieve", json={"queries": ["bad"]})
        client.post("/retrieve", content=b"{")
        client.get("/nowhere")
        counted = metrics(client)
    assert counted['requests_total{endpoint="/retrieve"}'] == counted['requests_total{endpoint="/search"}'] == 1
    assert counted["queries_total"] == 4
    assert {name: value for name, value in counted.items() if name.startswith("errors_total") and value} == {
        'errors_total{kind="timeout"}': 1,
        'errors_total{kind="bad_request"}': 1,
        'errors_total{kind="not_found"}': 1,
    }
    buckets = [value for name, value in counted.items() if name.startswith("request_seconds_bucket")]
    assert buckets == sorted(buckets) and buckets[-1] == counted["request_seconds_count"] == 2
    assert 0 < counted["request_seconds_sum"] < 10
    assert counted['batch_queries_bucket{le="1"}'] == 2, "one for a, one for bad"
    assert counted['batch_queries_bucket{le="4"}'] == counted["batch_queries_count"] == 3
    assert counted["batch_queries_sum"] == 5


def test_processes_add_up_and_a_successor_goes_on_with_the_counts_of_the_dead() -> None:
    memory = mmap.mmap(-1, shared_bytes(2))
    first, second = Metrics(memory, 0), Metrics(memory, 1)
    first.waiting(5)
    for process in (first, first, second):
        process.request("/retrieve", queries=2, remembered=1, seconds=0.5)
    successor = Metrics(memory, 0)
    successor.error("internal")
    for process in (successor, second):
        lines = process.text().decode().splitlines()
        assert 'searchparty_requests_total{endpoint="/retrieve"} 3' in lines
        assert "searchparty_queries_total 6" in lines
        assert "searchparty_waiting_requests 0" in lines, "what the dead one held is gone"
        assert "searchparty_workers 2" in lines


def test_a_query_that_was_answered_is_not_searched_again() -> None:
    retriever = FunctionRetriever()
    with running(retriever, 9) as address, client_of(address) as client:
        bodies = [{"queries": ["x", "x"]}, {"queries": ["y", "x"]}, {"queries": ["x"], "topk": 2}, {"queries": ["x"]}]
        replies = [client.post("/retrieve", json=body).json()["result"] for body in bodies]
        assert retriever.batches == [["x"], ["y"], ["x"]]
        assert [document["contents"] for result in replies[1] for document in result] == [
            f'"{query}"\nabout {query}, k=3' for query in ("y", "x")
        ]
        assert metrics(client)["remembered_queries_total"] == 2, "a repetition within a request is none"


def test_answers_are_remembered_up_to_a_size_and_the_oldest_is_forgotten() -> None:
    memo = Memo(3 * (300 + 4 + 1000))
    for name in "abc":
        memo.put(("form", 3, name), name.encode() * 1000)
    assert memo.get(("form", 3, "a")) == b"a" * 1000
    memo.put(("form", 3, "d"), b"d" * 1000)
    assert [memo.get(("form", 3, name)) is not None for name in "abcd"] == [True, False, True, True]
    assert memo.get(("other form", 3, "a")) is None


def test_a_memo_of_no_size_remembers_nothing() -> None:
    memo = Memo(0)
    memo.put(("form", 3, "a"), b"a")
    assert memo.get(("form", 3, "a")) is None


def test_hits_that_cannot_be_written_are_an_error_of_that_request_alone() -> None:
    class Unwritable(FunctionRetriever):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            return [[Hit(Passage("\ud800" if query == "bad" else query, "", ""), 1, 1.0)] for query in queries]

    with running(Unwritable(), 9) as address, client_of(address) as client:
        assert client.post("/retrieve", json={"queries": ["bad"]}).status_code == 500
        assert client.post("/retrieve", json={"queries": ["good"]}).status_code == 200
        assert metrics(client)["waiting_requests"] == 0
