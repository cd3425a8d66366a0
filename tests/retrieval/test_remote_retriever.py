"""The client of Search-R1's dialect against a server that misbehaves."""

from __future__ import annotations

import socket
from email.utils import formatdate
from typing import Any

import pytest
from retrieval_factories import ids
from stub_server import Reply, results, stub_server

from searchparty.errors import FailureKind, ServiceFailure, UserError
from searchparty.retrieval.opening import open_retriever
from searchparty.retrieval.remote import RemoteRetriever
from searchparty.retrieval.retrying import Patience
from searchparty.retrieval.types import Hit, Passage


def entry(name: str, score: float = 1.5) -> dict[str, object]:
    return {"document": {"id": name, "contents": f'"{name}"\nabout {name}'}, "score": score}


GOOD = results([entry("a"), entry("b", 1.0)])


def client(url: str, token: str | None = None, dialect: str = "search-r1", **patience: object) -> RemoteRetriever:
    settings = Patience(**{"pause": 0.01, "timeout": 60.0, **patience})  # type: ignore[arg-type]
    return RemoteRetriever(url, dialect=dialect, patience=settings, token=token)


def failure_of(url: str, **settings: Any) -> ServiceFailure:
    with pytest.raises(ServiceFailure) as caught:
        client(url, **settings).search(["q"], 3)
    assert caught.value.failure.source == "retriever"
    assert "\n" not in caught.value.failure.detail
    return caught.value


def test_hits_are_read_with_title_and_rank() -> None:
    with stub_server(GOOD) as stub:
        assert client(stub.url).search(["q"], 3) == [
            [Hit(Passage("a", "a", "about a"), 1, 1.5), Hit(Passage("b", "b", "about b"), 2, 1.0)]
        ]
        assert stub.requests == [{"queries": ["q"], "topk": 3, "return_scores": True}]


@pytest.mark.parametrize("ending", ["", "/", "/retrieve", "/retrieve/"])
def test_the_address_may_name_the_path_or_not(ending: str) -> None:
    with stub_server(GOOD) as stub:
        assert ids(client(stub.url + ending).search(["q"], 3)[0]) == ["a", "b"]


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://", "http://[", "http://host:port"])
def test_what_is_no_address_is_a_user_error(url: str) -> None:
    with pytest.raises(UserError, match="not an address"):
        RemoteRetriever(url)


def test_an_address_opens_a_remote_retriever() -> None:
    with stub_server(GOOD) as stub:
        assert ids(open_retriever(stub.url).search(["q"], 3)[0]) == ["a", "b"]


@pytest.mark.parametrize(
    ("document", "passage"),
    [
        ({"id": 7, "contents": "Absalon\nAbsalon was"}, Passage("7", "Absalon", "Absalon was")),
        ({"id": "x", "title": "T", "text": "t", "contents": '"other"\nt'}, Passage("x", "T", "t")),
        ({"id": "x", "text": "t", "url": None}, Passage("x", "", "t")),
    ],
)
def test_documents_of_other_servers_are_read(document: dict[str, object], passage: Passage) -> None:
    with stub_server(results([{"document": document, "score": 2}])) as stub:
        assert client(stub.url).search(["q"], 3) == [[Hit(passage, 1, 2.0)]]


def test_a_document_without_an_id_gets_one_that_follows_its_content() -> None:
    same, other = {"title": "T", "text": "t"}, {"title": "T", "text": "other"}
    with stub_server(results([{"document": document, "score": 1} for document in (same, same, other)])) as stub:
        first, second, third = ids(client(stub.url).search(["q"], 3)[0])
    assert first == second != third
    assert first.startswith("sha256:")


def test_no_queries_ask_nothing() -> None:
    with stub_server(GOOD) as stub:
        assert client(stub.url).search([], 3) == []
        assert stub.requests == []


def test_a_query_that_found_nothing_is_an_empty_list() -> None:
    with stub_server(results([], [entry("a")])) as stub:
        assert [ids(hits) for hits in client(stub.url).search(["x", "y"], 3)] == [[], ["a"]]


def test_more_hits_than_asked_for_are_cut() -> None:
    with stub_server(results([entry(str(number)) for number in range(9)])) as stub:
        assert ids(client(stub.url).search(["q"], 2)[0]) == ["0", "1"]


@pytest.mark.parametrize("trouble", [Reply(500, b"boom"), Reply(503), Reply(429), Reply(hang_up=True)])
def test_passing_trouble_is_tried_again(trouble: Reply) -> None:
    with stub_server(trouble, GOOD) as stub:
        assert ids(client(stub.url).search(["q"], 3)[0]) == ["a", "b"]
        assert len(stub.requests) == 2


@pytest.mark.parametrize(
    ("reply", "kind", "attempts"),
    [
        (Reply(500, b"boom"), FailureKind.SERVER_ERROR, 3),
        (Reply(429), FailureKind.RATE_LIMITED, 3),
        (Reply(hang_up=True), FailureKind.UNREACHABLE, 3),
        (Reply(400, b'{"error": "no"}'), FailureKind.REJECTED, 1),
        (Reply(404), FailureKind.REJECTED, 1),
        (Reply(302, headers={"Location": "/elsewhere"}), FailureKind.REJECTED, 1),
    ],
)
def test_lasting_trouble_is_a_typed_failure_after_the_attempts(reply: Reply, kind: FailureKind, attempts: int) -> None:
    with stub_server(reply) as stub:
        error = failure_of(stub.url, attempts=3)
        assert (error.failure.kind, error.failure.attempts, len(stub.requests)) == (kind, attempts, attempts)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"<html>"),
        Reply(body=b""),
        Reply(body=b"[]"),
        Reply(body=b'{"result": null}'),
        results(),
        results([entry("a")], [entry("b")]),
        Reply(body=b'{"result": [{"document": {}}]}'),
        results([{"id": "a", "contents": "bare"}]),
        results([{"document": {"id": "a", "contents": "x"}}]),
        results([{"document": {"id": "a", "contents": "x"}, "score": "high"}]),
        results([{"document": {"id": "a", "contents": None}, "score": 1}]),
        results([{"document": "text", "score": 1}]),
        results([{"document": {"id": "a"}, "score": 1}]),
        Reply(body=b'{"result": [[{"document": {"id": "a", "contents": "x"}, "score": NaN}]]}'),
    ],
)
def test_a_reply_in_another_form_is_malformed_and_never_evidence(reply: Reply) -> None:
    with stub_server(reply) as stub:
        error = failure_of(stub.url)
        assert error.failure.kind is FailureKind.MALFORMED_REPLY
        assert len(stub.requests) == 1


def test_a_refused_connection_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    error = failure_of(f"http://127.0.0.1:{port}", attempts=2)
    assert (error.failure.kind, error.failure.attempts) == (FailureKind.UNREACHABLE, 2)


@pytest.mark.parametrize("slow", [Reply(body=GOOD.body, delay=2.0), Reply(body=GOOD.body, trickle=0.05)])
def test_a_slow_reply_ends_at_the_deadline_and_is_not_asked_for_again(slow: Reply) -> None:
    with stub_server(slow) as stub:
        error = failure_of(stub.url, timeout=0.2)
        assert (error.failure.kind, len(stub.requests)) == (FailureKind.TIMEOUT, 1)
        assert "0.2 s" in error.failure.detail


@pytest.mark.parametrize("header", ["3600", formatdate(4_000_000_000, usegmt=True)])
def test_a_pause_that_the_server_asks_for_is_not_waited_for_past_the_deadline(header: str) -> None:
    with stub_server(Reply(429, headers={"Retry-After": header})) as stub:
        error = failure_of(stub.url, timeout=1.0)
        assert (error.failure.kind, len(stub.requests)) == (FailureKind.RATE_LIMITED, 1)


@pytest.mark.parametrize("header", ["0", "soon", "-1", "nan", formatdate(0, usegmt=True)])
def test_an_odd_or_past_pause_is_no_obstacle(header: str) -> None:
    with stub_server(Reply(503, headers={"Retry-After": header}), GOOD) as stub:
        assert ids(client(stub.url).search(["q"], 3)[0]) == ["a", "b"]


def test_credentials_are_sent_but_not_shown() -> None:
    for padding in (0, 295, 298):
        with stub_server(Reply(403, b"x" * padding + b"s3cret")) as stub:
            assert "s3" not in str(failure_of(stub.url, token="s3cret")), "not even its beginning, where the reply is cut"
    with stub_server(GOOD) as stub:
        retriever = client(stub.url, token="s3cret")
        retriever.search(["q"], 3)
        assert stub.headers[0]["authorization"] == "Bearer s3cret"
        assert "s3cret" not in retriever.identity


@pytest.mark.parametrize(
    "url", ["http://user:s3cret@127.0.0.1:1", "http://s3cret@host", "http://host:port", "http://", "ftp://host"]
)
def test_an_address_with_a_password_or_that_is_none_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(UserError) as caught:
        RemoteRetriever(url)
    assert len(caught.value.lines) == 1
    assert "s3cret" not in str(caught.value)


def test_a_server_that_did_not_answer_has_no_known_identity_until_it_does() -> None:
    retriever = client("http://127.0.0.1:9")
    assert (retriever.identity, retriever.identity_known) == ("remote(http://127.0.0.1:9)", False)
    with stub_server(GOOD) as stub:
        assert client(stub.url).identity_known


def test_the_identity_is_the_address_where_the_server_says_nothing_of_itself() -> None:
    with stub_server(GOOD) as stub:
        assert client(stub.url + "/retrieve").identity == f"remote({stub.url})"
