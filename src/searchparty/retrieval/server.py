"""Serves any retriever over HTTP.

It speaks every dialect of the client, Search-R1's at `POST /retrieve` and the native one at `POST /search` among them, see
`dialects`; `GET /health` says how many passages and which retriever there is; `GET /metrics` is for Prometheus. Every error is
`{"error": "one line"}`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import orjson

from searchparty.errors import FailureKind, ServiceFailure, UserError
from searchparty.http_server.asgi import Bodies, RequestError, overloaded, require_method
from searchparty.http_server.exchange import DirectApplication, Exchange
from searchparty.http_server.prometheus import CONTENT_TYPE
from searchparty.retrieval.batching import Answer, AsyncRetriever
from searchparty.retrieval.memo import Memo
from searchparty.retrieval.metrics import Metrics
from searchparty.retrieval.types import Retriever
from searchparty.retrieval.wire import PATHS, RetrieveRequest, parse_request

_MEGABYTE = 1024 * 1024

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


class RetrievalServer(DirectApplication):
    """The application over one retriever. Requests that wait together are searched together."""

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
        self._limits = limits or Limits()
        super().__init__(token, Bodies(self._limits.body_bytes, self._limits.held_bytes))
        self._passages = passages
        self._default_k = default_k
        self._metrics = metrics or Metrics()
        self._retriever = AsyncRetriever(retriever, on_batch=self._metrics.batch)
        self._memo = Memo(self._limits.memory_bytes)
        self._under_way = 0

    def admit(self, exchange: Exchange) -> None:
        """See `DirectApplication.admit`."""
        if exchange.path in PATHS:
            require_method(exchange.method, "POST")
            if self._under_way >= self._limits.waiting:
                raise overloaded(f"{self._under_way} requests are waiting already")
            self._count_under_way(1)
            exchange.ended = self._leave
        elif exchange.path in ("/health", "/metrics"):
            require_method(exchange.method, "GET")
        else:
            paths = f"POST {', '.join(PATHS)}, GET /health and /metrics"
            raise RequestError(404, f"no such path {exchange.path!r}; there are {paths}", "not_found")

    def answer(self, exchange: Exchange, body: bytes) -> None:
        """See `DirectApplication.answer`."""
        if exchange.path == "/health":
            health = {"status": "ok", "passages": self._passages, "identity": self._retriever.identity}
            exchange.respond(200, orjson.dumps(health))
        elif exchange.path == "/metrics":
            exchange.respond(200, self._metrics.text(), content_type=CONTENT_TYPE)
        else:
            self._retrieve(exchange, parse_request(exchange.path, body, self._default_k, self._passages))

    def count_error(self, kind: str) -> None:
        """See `Served.count_error`."""
        self._metrics.error(kind)

    def error_body(self, error: RequestError) -> bytes:
        """See `Served.error_body`."""
        return orjson.dumps({"error": str(error)})

    async def close(self) -> None:
        """See `Served.close`."""
        await self._retriever.close()

    def _count_under_way(self, more: int) -> None:
        self._under_way += more
        self._metrics.waiting(self._under_way)

    def _leave(self) -> None:
        self._count_under_way(-1)

    def _retrieve(self, exchange: Exchange, request: RetrieveRequest) -> None:
        """Reply with what is remembered, or as soon as the rest was searched for."""
        known: dict[str, bytes] = {}
        unknown: list[str] = []
        for query in dict.fromkeys(request.queries):
            answer = self._memo.get((request.form, request.k, query))
            if answer is None:
                unknown.append(query)
            else:
                known[query] = answer
        if not unknown:
            self._reply(exchange, request, known, len(known))
            return

        def settle(found: Answer) -> None:
            if isinstance(found, Exception):
                exchange.refuse(_refusal(found))
                return
            remembered = len(known)
            try:
                for query, hits in zip(unknown, found, strict=True):
                    known[query] = request.form.answer(hits)
                    self._memo.put((request.form, request.k, query), known[query])
                self._reply(exchange, request, known, remembered)
            except Exception as error:
                exchange.fail(error)

        exchange.given_up = self._retriever.hand_in(unknown, request.k, settle).cancel

    def _reply(self, exchange: Exchange, request: RetrieveRequest, answers: dict[str, bytes], remembered: int) -> None:
        reply = request.form.reply(request.queries, [answers[query] for query in request.queries])
        self._metrics.request(exchange.path, len(request.queries), remembered, time.perf_counter() - exchange.arrived)
        exchange.respond(200, reply)


def _refusal(error: ServiceFailure | UserError) -> RequestError:
    """What a client is told of a failed search: 504 or 502 if a service behind the retriever is out of order, else 500."""
    if isinstance(error, ServiceFailure):
        status = _STATUS_OF_FAILURE.get(error.failure.kind, 500)
        return RequestError(status, " ".join(str(error).split()), error.failure.kind)
    return RequestError(500, "; ".join(error.lines), "internal")
