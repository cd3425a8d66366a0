"""Tries a service again until it answers, the attempts are used up, or the deadline passes. Knows nothing of HTTP or dialects.

Every way to fail is a typed outcome, never an empty reply.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from searchparty.errors import Failure, FailureKind, ServiceFailure
from searchparty.http_calls import blot
from searchparty.retrieval.breaker import CircuitBreaker

T = TypeVar("T")

_FINAL = frozenset({FailureKind.REJECTED, FailureKind.MALFORMED_REPLY, FailureKind.TIMEOUT})
"""The same request would meet these again, or has no time left."""
_GATEWAY_STATUSES = frozenset({502, 503, 504})
"""Answers that tell of a whole server out of order, not of one request."""


@dataclass(frozen=True)
class Patience:
    """How hard a service is tried.

    Attributes:
        timeout: seconds that one request may take in all, pauses included.
        attempts: how often a request is sent at most.
        pause: seconds before the second attempt; doubled for each further one, and jittered by half.
        break_after: failed requests in a row after which the service is left alone for a while; 0 for never.
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


class Trouble(Exception):
    """One attempt that failed.

    Attributes:
        kind: why.
        detail: one line for a person.
        alive: the service did answer, be it with a refusal of this request.
        wait: seconds that it asks to wait; None if it does not say.
    """

    def __init__(self, kind: FailureKind, detail: str, *, alive: bool = False, wait: float | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.alive = alive
        self.wait = wait

    @classmethod
    def of_status(cls, status: int, detail: str, wait: float | None = None) -> Trouble:
        """That of an HTTP status other than 200."""
        if status == 429:
            kind = FailureKind.RATE_LIMITED
        else:
            kind = FailureKind.SERVER_ERROR if status >= 500 else FailureKind.REJECTED
        return cls(kind, f"HTTP {status} {detail}", alive=status not in _GATEWAY_STATUSES, wait=wait)


class Retrying:
    """The patience with one service. Safe to use from several threads at once.

    Broken connections, 429 and 5xx are tried again, or after the pause that the service asks for; anything else is final.
    No pause begins that would end after the deadline.
    """

    def __init__(self, address: str, patience: Patience, secret: str | None) -> None:
        """Args:
        address: names the service in failures.
        patience: how hard to try.
        secret: never shown.
        """
        self.address = address
        self.patience = patience
        self._secret = secret
        self._breaker = CircuitBreaker(patience.break_after, patience.break_seconds)
        self._last_trouble = ""

    def run(self, once: Callable[[float], T]) -> tuple[T, int]:
        """The first good result and the number of attempts it took.

        Args:
            once: makes one attempt until the deadline it is given (of `time.monotonic`); raises Trouble.

        Raises:
            ServiceFailure: there was none.
        """
        wait = self._breaker.admit()
        if wait:
            detail = f"not asked, since it failed too often in a row; asked again in {wait:.1f} s (last: {self._last_trouble})"
            raise self.failure(FailureKind.UNREACHABLE, detail, 0)
        alive = False
        deadline = time.monotonic() + self.patience.timeout
        try:
            for attempt in range(1, self.patience.attempts + 1):
                try:
                    result = once(deadline)
                    alive = True
                    return result, attempt
                except Trouble as trouble:
                    if not self._pause(trouble, attempt, deadline):
                        alive = trouble.alive
                        self._last_trouble = f"{trouble.kind}: {trouble.detail}"
                        raise self.failure(trouble.kind, trouble.detail, attempt) from None
            raise AssertionError("at least one attempt is made")
        finally:
            self._breaker.report(alive)

    def failure(self, kind: FailureKind, detail: str, attempts: int) -> ServiceFailure:
        """A failure of this service, without the secret."""
        text = blot(f"{self.address}: {' '.join(detail.split())}".rstrip(), self._secret)
        return ServiceFailure(Failure("retriever", kind, text, attempts))

    def _pause(self, trouble: Trouble, attempt: int, deadline: float) -> bool:
        """Wait for the next attempt; False at once if there is none."""
        if trouble.kind in _FINAL or attempt == self.patience.attempts:
            return False
        pause = self.patience.pause * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
        wait = pause if trouble.wait is None else trouble.wait
        if time.monotonic() + wait >= deadline:
            return False
        time.sleep(wait)
        return True
