"""Each dialect: what is sent, where, how its replies are read, and that nothing else is taken for an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stub_server import Reply, stub_server

from searchparty.config.recipe import RetrieverSpec
from searchparty.errors import FailureKind, ServiceFailure
from searchparty.retrieval.dialects import DIALECTS
from searchparty.retrieval.remote import RemoteRetriever
from searchparty.retrieval.types import Hit, Passage

A, B = {"id": "a", "contents": '"A"\nabout a'}, {"id": "b", "contents": '"B"\nabout b'}
PASSAGES = [Passage("a", "A", "about a"), Passage("b", "B", "about b")]
SCORED = [{"document": A, "score": 2.5}, {"document": B, "score": 1.0}]
BY_SCORE = [Hit(PASSAGES[0], 1, 2.5), Hit(PASSAGES[1], 2, 1.0)]
BY_RANK = [Hit(PASSAGES[0], 1, 1.0), Hit(PASSAGES[1], 2, 0.5)]

FORMS: list[tuple[str, str, dict[str, Any], Any, list[Hit]]] = [
    ("search-r1", "/retrieve", {"queries": ["q"], "topk": 3, "return_scores": True}, {"result": [SCORED]}, BY_SCORE),
    ("single-query", "/retrieve", {"query": "q", "topk": 3, "return_scores": True}, {"result": [SCORED]}, BY_SCORE),
    ("single-query", "/retrieve", {"query": "q", "topk": 3, "return_scores": True}, {"result": SCORED}, BY_SCORE),
    ("single-query", "/retrieve", {"query": "q", "topk": 3, "return_scores": True}, {"results": [A, B]}, BY_RANK),
    (
        "batch-search",
        "/batch_search",
        {"query": ["q"], "top_n": 3, "return_score": True},
        [[[A, B]], [[2.5, 1.0]]],
        BY_SCORE,
    ),
    (
        "queries",
        "/queries",
        {"queries": ["q"], "k": 3},
        {"queries": ["q"], "answers": [['7\t"A"\nabout a', "8\tB\nabout b"]]},
        [Hit(Passage("7", "A", "about a"), 1, 1.0), Hit(Passage("8", "B", "about b"), 2, 0.5)],
    ),
    (
        "native",
        "/search",
        {"version": 1, "queries": ["q"], "k": 3},
        {"version": 1, "results": [[{"id": "a", "title": "A", "text": "about a", "score": 2.5}]]},
        BY_SCORE[:1],
    ),
]


@pytest.mark.parametrize(("dialect", "path", "request_body", "reply", "hits"), FORMS)
def test_a_dialect_sends_its_request_to_its_path_and_reads_its_reply(
    dialect: str, path: str, request_body: dict[str, Any], reply: Any, hits: list[Hit]
) -> None:
    with stub_server(Reply(body=json.dumps(reply).encode())) as stub:
        assert RemoteRetriever(stub.url, dialect=dialect).search(["q"], 3) == [hits]
        assert (stub.requests, stub.paths) == ([request_body], [path])


def test_questions_come_back_as_title_line_and_text_with_an_id_that_follows_the_content() -> None:
    reply = [{"question": "q", "top_k_docs": ["A\nabout a", "B\nabout b", "A\nabout a"]}]
    with stub_server(Reply(body=json.dumps(reply).encode())) as stub:
        [hits] = RemoteRetriever(stub.url, dialect="questions").search(["q"], 3)
        assert (stub.requests, stub.paths) == ([{"questions": ["q"], "N": 3}], ["/search"])
    assert [(hit.passage.title, hit.passage.text, hit.score) for hit in hits[:2]] == [
        ("A", "about a", 1),
        ("B", "about b", 0.5),
    ]
    assert hits[0].passage == hits[2].passage != hits[1].passage


@pytest.mark.parametrize("text", ["1984 was a year", "no number\there", "\tempty number"])
def test_only_a_number_before_a_tab_is_an_id(text: str) -> None:
    [[hit]] = DIALECTS["queries"].hits({"answers": [[text]]}, 1, 3)
    assert (hit.passage.text, hit.passage.id[:7]) == (text, "sha256:")


def test_every_dialect_can_be_named_in_a_recipe() -> None:
    assert [RetrieverSpec(dialect=name).dialect for name in DIALECTS] == list(DIALECTS)  # type: ignore[arg-type]


def test_the_address_may_name_the_path_of_its_dialect() -> None:
    with stub_server(Reply(body=json.dumps({"answers": [[]]}).encode())) as stub:
        assert RemoteRetriever(stub.url + "/queries", dialect="queries").search(["q"], 3) == [[]]
        assert stub.paths == ["/queries"]


def test_the_identity_names_a_dialect_other_than_search_r1s() -> None:
    assert RemoteRetriever("http://127.0.0.1:9", dialect="queries").identity == "remote(http://127.0.0.1:9 in queries)"


def test_a_server_of_one_query_a_request_is_asked_once_per_query_and_the_answers_keep_their_order() -> None:
    with stub_server(Reply(body=json.dumps({"result": [SCORED]}).encode())) as stub:
        assert RemoteRetriever(stub.url, dialect="single-query").search(["x", "y", "z"], 1) == [BY_SCORE[:1]] * 3
        assert sorted(str(request["query"]) for request in stub.requests) == ["x", "y", "z"]


def test_one_failed_query_fails_the_search_of_a_server_of_one_query_a_request() -> None:
    good = Reply(body=json.dumps({"result": []}).encode())
    with stub_server(good, Reply(400), good) as stub, pytest.raises(ServiceFailure, match="rejected"):
        RemoteRetriever(stub.url, dialect="single-query").search(["x", "y", "z"], 1)


def test_a_query_that_is_no_text_is_rejected_without_being_sent() -> None:
    with stub_server(Reply(500)) as stub:
        with pytest.raises(ServiceFailure) as caught:
            RemoteRetriever(stub.url).search(["\ud800"], 3)
        assert (caught.value.failure.kind, caught.value.failure.attempts) == (FailureKind.REJECTED, 0)
        assert stub.requests == []


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [
        ("search-r1", {"result": [[A]]}),
        ("single-query", {"result": "text"}),
        ("single-query", {"result": [A, "text"]}),
        ("questions", {"top_k_docs": []}),
        ("questions", [{"question": "q"}]),
        ("questions", [{"top_k_docs": [7]}]),
        ("batch-search", [[A]]),
        ("batch-search", [[[A]], [[]]]),
        ("batch-search", [[[A]], [["high"]]]),
        ("batch-search", [[[A]], [[1], [2]]]),
        ("queries", {"answers": ["text"]}),
        ("queries", {"answers": [], "queries": []}),
        ("native", {"results": [[]]}),
        ("native", {"version": 2, "results": [[]]}),
        ("native", {"version": 1, "results": [[{"id": "a", "title": "A", "score": 1}]]}),
        ("native", {"version": 1, "results": [["text"]]}),
    ],
)
def test_a_reply_in_another_form_is_malformed(dialect: str, reply: Any) -> None:
    with stub_server(Reply(body=json.dumps(reply).encode())) as stub, pytest.raises(ServiceFailure) as caught:
        RemoteRetriever(stub.url, dialect=dialect).search(["q"], 3)
    assert caught.value.failure.kind is FailureKind.MALFORMED_REPLY


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["result", "results", "answers", "document", "score", "text", "id", "top_k_docs", "version"]), inner
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(DIALECTS)), JSON)
def test_any_json_is_an_answer_or_a_value_error(dialect: str, reply: Any) -> None:
    try:
        found = DIALECTS[dialect].hits(reply, 1, 2)
    except ValueError:
        return
    assert len(found) == 1
    assert [hit.rank for hit in found[0]] == list(range(1, len(found[0]) + 1))[:2]
