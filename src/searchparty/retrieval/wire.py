"""The two forms in which the server is asked: Search-R1's and the native one. Bytes to checked requests, hits to bytes.

Search-R1's, `POST /retrieve`: `{"queries": [text, …], "topk": number or null, "return_scores": true or false}` is answered with
`{"result": [[{"document": {"id", "contents"}, "score"}, …], …]}`, one list per query, or the bare documents without scores.

Native, `POST /search`: `{"version": 1, "queries": [text, …], "k": number}` is answered with
`{"version": 1, "results": [[{"id", "title", "text", "score"}, …], …]}`; `version` and `k` may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from searchparty.retrieval.asgi import RequestError
from searchparty.retrieval.dialect import document_from_passage
from searchparty.retrieval.dialects import NATIVE_VERSION
from searchparty.retrieval.types import Hit

MOST_DOCUMENTS = 100_000
"""Per request, queries times hits: bounds the memory one request can take."""


@dataclass(frozen=True, eq=False)
class Form:
    """How the answer to one query is written, and what stands around the answers.

    Attributes:
        entry: the JSON value of one hit.
        opening: bytes before the list of answers; `]}` follows it.
    """

    entry: Callable[[Hit], dict[str, Any]]
    opening: bytes

    def answer(self, hits: Sequence[Hit]) -> bytes:
        """The hits of one query."""
        return orjson.dumps([self.entry(hit) for hit in hits])

    def reply(self, answers: Sequence[bytes]) -> bytes:
        """The whole body."""
        return b"".join((self.opening, b",".join(answers), b"]}"))


SCORED = Form(lambda hit: {"document": document_from_passage(hit.passage), "score": hit.score}, b'{"result":[')
BARE = Form(lambda hit: document_from_passage(hit.passage), b'{"result":[')
NATIVE = Form(
    lambda hit: {"id": hit.passage.id, "title": hit.passage.title, "text": hit.passage.text, "score": hit.score},
    b'{"version":%d,"results":[' % NATIVE_VERSION,
)


@dataclass(frozen=True)
class RetrieveRequest:
    """A checked request. `k` is at least 1 and at most the number of passages."""

    queries: list[str]
    k: int
    form: Form


def parse_search_r1(body: bytes, default_k: int, passages: int) -> RetrieveRequest:
    """Check the body of `POST /retrieve`. A `topk` of null or 0 means the default; unknown fields are ignored.

    Raises:
        RequestError: 400 with what is wrong.
    """
    record = _object(body)
    return_scores = record.get("return_scores")
    if return_scores is not None and not isinstance(return_scores, bool):
        raise _bad("'return_scores' must be true or false")
    queries = _queries(record)
    return RetrieveRequest(queries, _k(record, "topk", len(queries), default_k, passages), SCORED if return_scores else BARE)


def parse_native(body: bytes, default_k: int, passages: int) -> RetrieveRequest:
    """Check the body of `POST /search`. Unknown fields are refused: they would be misspelt, or of a later version.

    Raises:
        RequestError: 400 with what is wrong.
    """
    record = _object(body)
    version = record.get("version", NATIVE_VERSION)
    if version != NATIVE_VERSION or isinstance(version, bool):
        raise _bad(f"'version' must be {NATIVE_VERSION}, the only one that this server speaks")
    if unknown := sorted(record.keys() - {"version", "queries", "k"}):
        raise _bad(f"unknown field {unknown[0]!r}; there are version, queries and k")
    queries = _queries(record)
    return RetrieveRequest(queries, _k(record, "k", len(queries), default_k, passages), NATIVE)


PARSERS: Mapping[str, Callable[[bytes, int, int], RetrieveRequest]] = {"/retrieve": parse_search_r1, "/search": parse_native}
"""How a request is read, by its path."""


def _object(body: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _bad(f"the body is not valid JSON: {error}") from None
    if not isinstance(record, dict):
        raise _bad("the body must be a JSON object with 'queries'")
    return record


def _queries(record: dict[str, Any]) -> list[str]:
    queries = record.get("queries")
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise _bad("'queries' must be a list of strings")
    return queries


def _k(record: dict[str, Any], name: str, queries: int, default_k: int, passages: int) -> int:
    k = record.get(name)
    if k is not None and (isinstance(k, bool) or not isinstance(k, int)):
        raise _bad(f"{name!r} must be a whole number or null")
    if k is not None and k < 0:
        raise _bad(f"{name!r} must not be negative, it is {k}")
    k = min(k or default_k, passages)
    if queries * k > MOST_DOCUMENTS:
        raise _bad(f"{queries} queries times {name} {k} is more than {MOST_DOCUMENTS} documents; ask for less at a time")
    return k


def _bad(reason: str) -> RequestError:
    return RequestError(400, reason, "bad_request")
