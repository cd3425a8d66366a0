"""Client of a retrieval server in any of the dialects. Every way to fail is a typed outcome, never an empty list."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import orjson

from searchparty.errors import FailureKind
from searchparty.http_calls import TOKEN_VARIABLE
from searchparty.retrieval.dialects import DIALECTS
from searchparty.retrieval.posting import Poster
from searchparty.retrieval.retrying import Patience
from searchparty.retrieval.types import Hit

_AT_ONCE = 16
"""Requests under way at once where a dialect takes one query a request."""


class RemoteRetriever:
    """A `Retriever` behind HTTP. Connections are pooled; safe to use from several threads at once. See `Poster` for retries."""

    def __init__(
        self,
        url: str,
        *,
        dialect: str = "search-r1",
        patience: Patience | None = None,
        token: str | None = None,
        secret_variable: str = TOKEN_VARIABLE,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            url: `http://host:port`, or the same with the dialect's path.
            dialect: a name out of `DIALECTS`.
            patience: how hard to try; the time-out holds for each request.
            token: sent as a bearer token.
            secret_variable: where the user is told to put a token that stands in the address.

        Raises:
            UserError: the address is none, or holds a password.
        """
        self._dialect = DIALECTS[dialect]
        self._patience = patience or Patience()
        address = url.rstrip("/").removesuffix(self._dialect.path)
        self._poster = Poster(address, self._patience, token, secret_variable)
        self._own_name = self._poster.address if dialect == "search-r1" else f"{self._poster.address} in {dialect}"
        self._identity: str | None = None
        self._identity_asked = threading.Lock()
        self._pool = ThreadPoolExecutor(_AT_ONCE, "remote") if self._dialect.one_by_one else None

    @property
    def identity(self) -> str:
        """The address, with what the server says of itself at `/health`, if it does. Asked until it answers."""
        with self._identity_asked:
            if self._identity is None:
                self._identity = self._ask_identity()
            return f"remote({self._own_name}){f': {self._identity}' if self._identity else ''}"

    @property
    def identity_known(self) -> bool:
        """Whether the server has answered, so that another identity means another server."""
        _ = self.identity
        return self._identity is not None

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, in as few requests as the dialect allows. Raises ServiceFailure, see `FailureKind`."""
        if self._pool is None:
            return self._ask(queries, k) if queries else []
        answers = [self._pool.submit(self._ask, [query], k) for query in queries]
        try:
            return [answer.result()[0] for answer in answers]
        finally:
            for answer in answers:
                answer.cancel()

    def close(self) -> None:
        """Close the connections. May be called twice."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._poster.close()

    def _ask(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The hits out of one request."""
        try:
            body = orjson.dumps(self._dialect.request(queries, k))
        except TypeError as error:
            raise self._poster.failure(FailureKind.REJECTED, f"the query is not valid text: {error}", 0) from None
        reply, attempts = self._poster.post(self._dialect.path, body)
        try:
            return self._dialect.hits(orjson.loads(reply), len(queries), k)
        except ValueError as error:
            detail = f"the reply is not in the form of {self._dialect.name}: {error}"
            raise self._poster.failure(FailureKind.MALFORMED_REPLY, detail, attempts) from None

    def _ask_identity(self) -> str | None:
        """What the server calls itself, empty if it does not say; None if it does not answer."""
        reply = self._poster.get("/health", min(self._patience.timeout, 5.0))
        if reply is None or reply.status_code in (502, 503, 504):
            return None
        try:
            identity = orjson.loads(reply.content)["identity"] if reply.status_code == 200 else ""
        except (ValueError, KeyError, TypeError):
            return ""
        return identity if isinstance(identity, str) else ""
