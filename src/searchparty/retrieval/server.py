"""Serves any retriever over HTTP in Search-R1's dialect. A bare ASGI application: no web framework between socket and search.

`POST /retrieve` takes `{"queries": [text, …], "topk": number or null, "return_scores": true or false}` and answers
`{"result": [[{"document": {"id", "contents"}, "score"}, …], …]}`, one list per query, or the bare documents without scores.
`GET /health` says how many passages there are and which retriever this is. Every error is `{"error": "one line"}`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import orjson

from searchparty.errors import FailureKind, ServiceFailure, UserError
from searchparty.retrieval.batching import AsyncRetriever
from searchparty.retrieval.dialect import document_from_passage
from searchparty.retrieval.types import Hit, Retriever

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LARGEST_BODY = 16 * 1024 * 1024
"""Bytes; far more than the queries of the largest training batch."""
MOST_DOCUMENTS = 100_000
"""Per request, queries times hits: bounds the memory one request can take."""


@dataclass(frozen=True)
class RetrieveRequest:
    """A checked request. `k` is at least 1 and at most the number of passages."""

    queries: list[str]
    k: int
    return_scores: bool


class RequestError(Exception):
    """A request that is answered with an HTTP status and one line."""

    def __init__(self, status: int, reason: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers


class RetrievalServer:
    """The ASGI application over one retriever. Requests that wait together are searched together."""

    def __init__(self, retriever: Retriever, passages: int, default_k: int = 3) -> None:
        """Args:
        retriever: answers the queries.
        passages: number of passages in the corpus.
        default_k: hits per query where the request names none.
        """
        self._passages = passages
        self._default_k = default_k
        self._retriever = AsyncRetriever(retriever)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection scope as ASGI lays down."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            try:
                await _respond(send, 200, await self._answer(scope, receive))
            except RequestError as error:
                await _respond(send, error.status, orjson.dumps({"error": str(error)}), error.headers)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                await self._retriever.close()
                return

    async def _answer(self, scope: Scope, receive: Receive) -> bytes:
        path, method = scope["path"].rstrip("/"), scope["method"]
        if path == "/health":
            _require_method(method, "GET")
            return orjson.dumps({"status": "ok", "passages": self._passages, "identity": self._retriever.identity})
        if path != "/retrieve":
            raise RequestError(404, f"no such path {scope['path']!r}; there are POST /retrieve and GET /health")
        _require_method(method, "POST")
        request = parse_request(await _read_body(scope, receive), self._default_k, self._passages)
        try:
            results = await self._retriever.search_many(request.queries, request.k)
        except ServiceFailure as error:
            status = 504 if error.failure.kind is FailureKind.TIMEOUT else 502
            raise RequestError(status, " ".join(str(error).split())) from error
        except UserError as error:
            raise RequestError(500, "; ".join(error.lines)) from error
        return orjson.dumps({"result": [[_entry(hit, request.return_scores) for hit in hits] for hits in results]})


def parse_request(body: bytes, default_k: int, passages: int) -> RetrieveRequest:
    """Check the body of `POST /retrieve`. A `topk` of null or 0 means the default; unknown fields are ignored.

    Raises:
        RequestError: 400 with what is wrong.
    """
    try:
        record = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"the body is not valid JSON: {error}") from None
    if not isinstance(record, dict):
        raise RequestError(400, "the body must be a JSON object with 'queries'")
    queries, k, return_scores = record.get("queries"), record.get("topk"), record.get("return_scores")
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise RequestError(400, "'queries' must be a list of strings")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int)):
        raise RequestError(400, "'topk' must be a whole number or null")
    if return_scores is not None and not isinstance(return_scores, bool):
        raise RequestError(400, "'return_scores' must be true or false")
    if k is not None and k < 0:
        raise RequestError(400, f"'topk' must not be negative, it is {k}")
    k = min(k or default_k, passages)
    if len(queries) * k > MOST_DOCUMENTS:
        raise RequestError(
            400, f"{len(queries)} queries times topk {k} is more than {MOST_DOCUMENTS} documents; ask for less at a time"
        )
    return RetrieveRequest(queries, k, bool(return_scores))


def _entry(hit: Hit, with_score: bool) -> dict[str, Any]:
    document = document_from_passage(hit.passage)
    return {"document": document, "score": hit.score} if with_score else document


def _require_method(method: str, allowed: str) -> None:
    if method != allowed:
        raise RequestError(405, f"{method} is not allowed here; use {allowed}", ((b"allow", allowed.encode()),))


async def _read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body. Raises RequestError 413 as soon as it is known to be too long."""
    too_long = RequestError(413, f"the body is longer than {LARGEST_BODY} bytes; send fewer queries at a time")
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    if announced.isdigit() and int(announced) > LARGEST_BODY:
        raise too_long
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError(400, "the connection was closed before the body was complete")
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            raise too_long
        if not message.get("more_body", False):
            return bytes(body)


async def _respond(send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})
