"""Sends JSON to a retrieval server until it answers, its attempts are used up, or the deadline passes. Knows no dialect.

Every way to fail is a typed outcome, never an empty reply.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import httpx

from searchparty.errors import Failure, FailureKind, ServiceFailure
from searchparty.http_calls import LOOPBACK, blot, error_line, read_address, retry_after
from searchparty.retrieval.breaker import CircuitBreaker

_LARGEST_REPLY = 256 * 1024 * 1024
_CONNECTIONS = 64
_GATEWAY_STATUSES = frozenset({502, 503, 504})
"""Answers that tell of a whole server out of order, not of one request."""


@dataclass(frozen=True)
class Patience:
    """How hard a server is tried.

    Attributes:
        timeout: seconds that one request may take in all, pauses included.
        attempts: how often a request is sent at most.
        pause: seconds before the second attempt; doubled for each further one, and jittered by half.
        break_after: failed requests in a row after which the server is left alone for a while; 0 for never.
        break_seconds: how long.
    """

    timeout: float = 30.0
    attempts: int = 3
    pause: float = 0.25
    break_after: int = 10
    break_seconds: float = 5.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {self.attempts}")


class Poster:
    """Posts to one address over pooled connections. Safe to use from several threads at once.

    Broken connections, 429 and 5xx are tried again, or after the pause that the server asks for; anything else is final.
    No pause begins that would end after the deadline.
    """

    def __init__(self, address: str, patience: Patience, token: str | None, secret_variable: str) -> None:
        """Prepare; nothing is sent yet.

        Args:
            address: `http://host:port`, perhaps with a path before that of the requests.
            patience: how hard to try.
            token: sent as a bearer token, and never shown.
            secret_variable: where the user is told to put a token that stands in the address.

        Raises:
            UserError: the address is none, or holds a password.
        """
        parts = read_address(address, secret_variable)
        self.address = address.rstrip("/")
        self._patience = patience
        self._token = token
        self._breaker = CircuitBreaker(patience.break_after, patience.break_seconds)
        self._last_trouble = ""
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token}"} if token else None,
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
            trust_env=parts.hostname not in LOOPBACK,
        )

    def post(self, path: str, body: bytes) -> tuple[bytes, int]:
        """The body of the first good reply and the number of attempts it took. Raises ServiceFailure."""
        wait = self._breaker.admit()
        if wait:
            detail = f"not asked, since it failed too often in a row; asked again in {wait:.1f} s (last: {self._last_trouble})"
            raise self.failure(FailureKind.UNREACHABLE, detail, 0)
        alive = False
        try:
            reply = self._post(path, body)
            alive = True
            return reply
        except _Trouble as trouble:
            alive = trouble.alive
            self._last_trouble = f"{trouble.kind}: {trouble.detail}"
            raise self.failure(trouble.kind, trouble.detail, trouble.attempt) from None
        finally:
            self._breaker.report(alive)

    def get(self, path: str, timeout: float) -> httpx.Response | None:
        """One quick question besides; None if there is no answer."""
        try:
            return self._client.get(f"{self.address}{path}", timeout=timeout)
        except httpx.HTTPError:
            return None

    def failure(self, kind: FailureKind, detail: str, attempts: int) -> ServiceFailure:
        """A failure of this server, without the token."""
        text = blot(f"{self.address}: {detail}".rstrip(), self._token)
        return ServiceFailure(Failure("retriever", kind, text, attempts))

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._client.close()

    def _post(self, path: str, body: bytes) -> tuple[bytes, int]:
        deadline = time.monotonic() + self._patience.timeout
        for attempt in range(1, self._patience.attempts + 1):
            asked_to_wait = None
            try:
                status, reply, headers = self._send(path, body, deadline, attempt)
                if status == 200:
                    return reply, attempt
                detail = f"HTTP {status} {error_line(reply, self._token)}"
                trouble = _Trouble(_kind_of(status), detail, attempt, alive=status not in _GATEWAY_STATUSES)
                asked_to_wait = retry_after(headers)
            except httpx.TimeoutException:
                detail = f"no complete reply within {self._patience.timeout:g} s"
                raise _Trouble(FailureKind.TIMEOUT, detail, attempt) from None
            except httpx.DecodingError as error:
                detail = f"{type(error).__name__}: {error}"
                raise _Trouble(FailureKind.MALFORMED_REPLY, detail, attempt, alive=True) from None
            except httpx.TransportError as error:
                trouble = _Trouble(FailureKind.UNREACHABLE, f"{type(error).__name__}: {error}", attempt)
            if trouble.kind is FailureKind.REJECTED:
                raise trouble
            pause = self._patience.pause * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
            wait = pause if asked_to_wait is None else asked_to_wait
            if attempt == self._patience.attempts or time.monotonic() + wait >= deadline:
                raise trouble
            time.sleep(wait)
        raise AssertionError("at least one attempt is made")

    def _send(self, path: str, body: bytes, deadline: float, attempt: int) -> tuple[int, bytes, httpx.Headers]:
        """One attempt. Raises httpx.TimeoutException when the deadline passes, also for a reply that trickles in."""
        remaining = max(deadline - time.monotonic(), 0.001)
        headers = {"Content-Type": "application/json"}
        with self._client.stream("POST", f"{self.address}{path}", content=body, headers=headers, timeout=remaining) as response:
            received = bytearray()
            for chunk in response.iter_bytes():
                received += chunk
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("the reply trickles in")
                if len(received) > _LARGEST_REPLY:
                    detail = f"the reply is longer than {_LARGEST_REPLY} bytes"
                    raise _Trouble(FailureKind.MALFORMED_REPLY, detail, attempt, alive=True)
            return response.status_code, bytes(received), response.headers


class _Trouble(Exception):
    """One attempt that failed, before it is known whether another one is made."""

    def __init__(self, kind: FailureKind, detail: str, attempt: int, alive: bool = False) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.attempt = attempt
        self.alive = alive


def _kind_of(status: int) -> FailureKind:
    if status == 429:
        return FailureKind.RATE_LIMITED
    return FailureKind.SERVER_ERROR if status >= 500 else FailureKind.REJECTED
