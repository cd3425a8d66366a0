"""Serves any retriever over HTTP.

It speaks every dialect of the client, Search-R1's at `POST /retrieve` and the native one at `POST /search` among them, see
`dialects`; `GET /health` says how many passages and which retriever there is; `GET /metrics` is for Prometheus. Every error is
`{"error": "one line"}`.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import orjson

from searchparty.errors import FailureKind, ServiceFailure, UserError
from searchparty.http_server.application import Application
from searchparty.http_server.asgi import (
    Bodies,
    ClientGone,
    Receive,
    RequestError,
    Scope,
    Send,
    disconnected,
    overloaded,
    require_method,
    respond,
)
from searchparty.http_server.prometheus import CONTENT_TYPE
from searchparty.retrieval.batching import AsyncRetriever
from searchparty.retrieval.memo import Memo
from searchparty.retrieval.metrics import Metrics
from searchparty.retrieval.types import Hit, Retriever
from searchparty.retrieval.wire import PATHS, RetrieveRequest, parse_request

_MEGABYTE = 1024 * 1024
_UNWATCHED_SECONDS = 0.1
"""A search that takes longer is given up when its client closes the connection; watching from the start would cost time."""

_STATUS_OF_FAILURE = {FailureKind.TIMEOUT: 504, FailureKind.UNREACHABLE: 502, FailureKind.RATE_LIMITED: 502}
"""What a client is told when a service behind the retriever is out of order; any other failure may be this request's own."""


@dataclass(frozen=True)
class Limits:
    """What one server process takes on.

    Attributes:
        body_bytes: of one request.
        waiting: requests under way at once; more are answered with 503 and Retry-After.
        memory_bytes: of remembered answers; 0 remembers none.
    """

    body_bytes: int = 16 * _MEGABYTE
    waiting: int = 1024
    memory_bytes: int = 64 * _MEGABYTE

    @property
    def held_bytes(self) -> int:
        """Of all bodies together."""
        return max(256 * _MEGABYTE, self.body_bytes)


class RetrievalServer(Application):
    """The ASGI application over one retriever. Requests that wait together are searched together."""

    def __init__(
        self,
        retriever: Retriever,
        passages: int | None,
        default_k: int = 3,
        *,
        limits: Limits | None = None,
        token: str | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Args:
        retriever: answers the queries; equal queries must have equal answers, since answers are remembered.
        passages: number of passages in the corpus, None if it is not known; no request gets more hits.
        default_k: hits per query where the request names none.
        limits: what the server takes on.
        token: what every client must send as a bearer token, except to `/health`; None for no such thing.
        metrics: where to count.
        """
        super().__init__(token)
        self._passages = passages
        self._default_k = default_k
        self._limits = limits or Limits()
        self._metrics = metrics or Metrics()
        self._retriever = AsyncRetriever(retriever, on_batch=self._metrics.batch)
        self._bodies = Bodies(self._limits.body_bytes, self._limits.held_bytes)
        self._memo = Memo(self._limits.memory_bytes)
        self._under_way = 0

    async def handle(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """See `Application.handle`."""
        method = scope["method"]
        if path == "/health":
            require_method(method, "GET")
            health = {"status": "ok", "passages": self._passages, "identity": self._retriever.identity}
            await respond(send, 200, orjson.dumps(health))
        elif path == "/metrics":
            require_method(method, "GET")
            await respond(send, 200, self._metrics.text(), content_type=CONTENT_TYPE)
        elif path in PATHS:
            require_method(method, "POST")
            await self._retrieve(path, scope, receive, send)
        else:
            paths = f"POST {', '.join(PATHS)}, GET /health and /metrics"
            raise RequestError(404, f"no such path {scope['path']!r}; there are {paths}", "not_found")

    def count_error(self, kind: str) -> None:
        """See `Application.count_error`."""
        self._metrics.error(kind)

    def error_body(self, error: RequestError) -> bytes:
        """See `Application.error_body`."""
        return orjson.dumps({"error": str(error)})

    async def close(self) -> None:
        """See `Application.close`."""
        await self._retriever.close()

    async def _retrieve(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if self._under_way >= self._limits.waiting:
            raise overloaded(f"{self._under_way} requests are waiting already")
        started = time.perf_counter()
        self._under_way += 1
        self._metrics.waiting(self._under_way)
        try:
            async with self._bodies.read(scope, receive) as body:
                request = parse_request(path, body, self._default_k, self._passages)
                answers, remembered = await self._answers(request, receive)
                reply = request.form.reply(request.queries, answers)
                self._metrics.request(path, len(request.queries), remembered, time.perf_counter() - started)
                await respond(send, 200, reply)
        finally:
            self._under_way -= 1
            self._metrics.waiting(self._under_way)

    async def _answers(self, request: RetrieveRequest, receive: Receive) -> tuple[list[bytes], int]:
        """The answer to each query as it is sent, and how many different queries were remembered."""
        known: dict[str, bytes] = {}
        unknown: list[str] = []
        for query in dict.fromkeys(request.queries):
            answer = self._memo.get((request.form, request.k, query))
            if answer is None:
                unknown.append(query)
            else:
                known[query] = answer
        remembered = len(known)
        if unknown:
            for query, hits in zip(unknown, await self._search(unknown, request.k, receive), strict=True):
                known[query] = request.form.answer(hits)
                self._memo.put((request.form, request.k, query), known[query])
        return [known[query] for query in request.queries], remembered

    async def _search(self, queries: list[str], k: int, receive: Receive) -> list[list[Hit]]:
        """The hits of queries; given up, and not begun if that is still possible, when the client is gone.

        Raises:
            RequestError: 504 or 502 if a service behind the retriever is out of order, 500 if it failed for this request.
            ClientGone: nobody waits any more.
        """
        found = self._retriever.submit(queries, k)
        watcher: asyncio.Task[None] | None = None

        async def watch() -> None:
            await disconnected(receive)
            found.cancel()

        def begin_to_watch() -> None:
            nonlocal watcher
            watcher = asyncio.create_task(watch())

        timer = asyncio.get_running_loop().call_later(_UNWATCHED_SECONDS, begin_to_watch)
        try:
            return await found
        except asyncio.CancelledError:
            if watcher is not None and watcher.done():
                raise ClientGone from None
            raise
        except ServiceFailure as error:
            status = _STATUS_OF_FAILURE.get(error.failure.kind, 500)
            raise RequestError(status, " ".join(str(error).split()), error.failure.kind) from error
        except UserError as error:
            raise RequestError(500, "; ".join(error.lines), "internal") from error
        finally:
            timer.cancel()
            if watcher is not None:
                watcher.cancel()
