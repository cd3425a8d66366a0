"""Client of a retrieval server that speaks Search-R1's dialect. Every way to fail is a typed outcome, never an empty list."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx
import orjson

from searchparty.errors import Failure, FailureKind, ServiceFailure
from searchparty.http_calls import LOOPBACK, blot, error_line, read_address, retry_after
from searchparty.retrieval.dialect import passage_from_document
from searchparty.retrieval.types import Hit

_LARGEST_REPLY = 256 * 1024 * 1024


class RemoteRetriever:
    """A `Retriever` behind HTTP. Connections are pooled; safe to use from several threads at once.

    Broken connections, 429 and 5xx are tried again with growing, jittered pauses, or after the pause that the server asks for;
    anything else is final. `timeout` bounds the whole search, pauses included: no pause begins that would end after it.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 30.0,
        attempts: int = 3,
        token: str | None = None,
        pause: float = 0.25,
        secret_variable: str = "SEARCHPARTY_RETRIEVER_TOKEN",
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            url: `http://host:port`, or the same with `/retrieve`.
            timeout: seconds that one search may take in all.
            attempts: how often a search is sent at most.
            token: sent as a bearer token.
            pause: seconds before the second attempt; doubled for each further one.
            secret_variable: where the user is told to put a token that stands in the address.

        Raises:
            UserError: the address is none, or holds a password.
        """
        parts = read_address(url, secret_variable)
        if attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {attempts}")
        self._address = url.rstrip("/").removesuffix("/retrieve")
        self._timeout = timeout
        self._attempts = attempts
        self._pause = pause
        self._token = token
        self._identity: str | None = None
        self._identity_asked = threading.Lock()
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token}"} if token else None,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16),
            trust_env=parts.hostname not in LOOPBACK,
        )

    @property
    def identity(self) -> str:
        """The address, with what the server says of itself at `/health`, if it does. Asked until it answers."""
        with self._identity_asked:
            if self._identity is None:
                self._identity = self._ask_identity()
            return f"remote({self._address}){f': {self._identity}' if self._identity else ''}"

    @property
    def identity_known(self) -> bool:
        """Whether the server has answered, so that another identity means another server."""
        _ = self.identity
        return self._identity is not None

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, in one request. Raises ServiceFailure, see `FailureKind`."""
        if not queries:
            return []
        body = orjson.dumps({"queries": list(queries), "topk": k, "return_scores": True})
        reply, attempts = self._post(body)
        try:
            return _hits_of_reply(orjson.loads(reply), len(queries), k)
        except ValueError as error:
            raise self._failure(
                FailureKind.MALFORMED_REPLY, f"the reply is not in Search-R1's form: {error}", attempts
            ) from None

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._client.close()

    def _post(self, body: bytes) -> tuple[bytes, int]:
        """The body of the first good reply and the number of attempts it took."""
        deadline = time.monotonic() + self._timeout
        for attempt in range(1, self._attempts + 1):
            asked_to_wait = None
            try:
                status, reply, headers = self._send(body, deadline)
                if status == 200:
                    return reply, attempt
                failure = self._failure(_kind_of(status), f"HTTP {status} {error_line(reply, self._token)}", attempt)
                asked_to_wait = retry_after(headers)
            except httpx.TimeoutException:
                failure = self._failure(FailureKind.TIMEOUT, f"no complete reply within {self._timeout:g} s", attempt)
            except httpx.DecodingError as error:
                raise self._failure(FailureKind.MALFORMED_REPLY, f"{type(error).__name__}: {error}", attempt) from None
            except httpx.TransportError as error:
                failure = self._failure(FailureKind.UNREACHABLE, f"{type(error).__name__}: {error}", attempt)
            if failure.failure.kind in (FailureKind.TIMEOUT, FailureKind.REJECTED, FailureKind.MALFORMED_REPLY):
                raise failure
            wait = self._pause * 2 ** (attempt - 1) * random.uniform(0.5, 1.5) if asked_to_wait is None else asked_to_wait
            if attempt == self._attempts or time.monotonic() + wait >= deadline:
                raise failure
            time.sleep(wait)
        raise AssertionError("at least one attempt is made")

    def _send(self, body: bytes, deadline: float) -> tuple[int, bytes, httpx.Headers]:
        """One attempt. Raises httpx.TimeoutException when the deadline passes, also for a reply that trickles in."""
        remaining = max(deadline - time.monotonic(), 0.001)
        headers = {"Content-Type": "application/json"}
        with self._client.stream(
            "POST", f"{self._address}/retrieve", content=body, headers=headers, timeout=remaining
        ) as response:
            received = bytearray()
            for chunk in response.iter_bytes():
                received += chunk
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("the reply trickles in")
                if len(received) > _LARGEST_REPLY:
                    raise self._failure(FailureKind.MALFORMED_REPLY, f"the reply is longer than {_LARGEST_REPLY} bytes", 1)
            return response.status_code, bytes(received), response.headers

    def _ask_identity(self) -> str | None:
        """What the server calls itself, empty if it does not say; None if it does not answer."""
        try:
            reply = self._client.get(f"{self._address}/health", timeout=min(self._timeout, 5.0))
        except httpx.HTTPError:
            return None
        try:
            identity = orjson.loads(reply.content)["identity"] if reply.status_code == 200 else ""
        except (ValueError, KeyError, TypeError):
            return ""
        return identity if isinstance(identity, str) else ""

    def _failure(self, kind: FailureKind, detail: str, attempts: int) -> ServiceFailure:
        text = blot(f"{self._address}: {detail}".rstrip(), self._token)
        return ServiceFailure(Failure("retriever", kind, text, attempts))


def _kind_of(status: int) -> FailureKind:
    if status == 429:
        return FailureKind.RATE_LIMITED
    return FailureKind.SERVER_ERROR if status >= 500 else FailureKind.REJECTED


def _hits_of_reply(reply: Any, queries: int, k: int) -> list[list[Hit]]:
    """The hits of a reply with scores. Raises ValueError if any part of it has another form."""
    if not isinstance(reply, dict) or not isinstance(reply.get("result"), list):
        raise ValueError("an object with a list 'result' is needed")
    if len(reply["result"]) != queries:
        raise ValueError(f"{len(reply['result'])} results for {queries} queries")
    found = []
    for documents in reply["result"]:
        if not isinstance(documents, list):
            raise ValueError(f"each result must be a list, found {type(documents).__name__}")
        found.append([_hit(entry, rank) for rank, entry in enumerate(documents[:k], start=1)])
    return found


def _hit(entry: Any, rank: int) -> Hit:
    if not isinstance(entry, dict) or "document" not in entry:
        raise ValueError("each entry must be an object with 'document' and 'score'")
    score = entry.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise ValueError("'score' must be a number")
    return Hit(passage_from_document(entry["document"]), rank, float(score))
