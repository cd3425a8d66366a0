"""A circuit breaker: after enough failures in a row a service is left alone for a while, then tried with one request.

Knows nothing of HTTP. The states are those of the pattern (Nygard, Release It!, 2007): closed, open, half open.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class CircuitBreaker:
    """Counts the endings of requests and says whether another may be sent. Safe to use from several threads at once.

    Only failures that every request would meet may be reported: a request that is refused for its own sake shows a living
    service, and one bad query must not shut out the good ones.
    """

    def __init__(self, failures: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Args:
        failures: how many in a row open the circuit; 0 never opens it.
        seconds: how long it stays open before one request is let through as a probe.
        clock: seconds that only grow.
        """
        self._failures = failures
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._closed_again_at: float | None = None
        self._probing = False

    def admit(self) -> float:
        """0 if a request may be sent now, which must then be reported; else the seconds until one may be, at least a little."""
        with self._lock:
            if self._closed_again_at is None:
                return 0.0
            wait = self._closed_again_at - self._clock()
            if wait > 0:
                return wait
            if self._probing:
                return self._seconds
            self._probing = True
            return 0.0

    def report(self, alive: bool) -> None:
        """Say how an admitted request ended: whether the service answered, be it with a refusal."""
        with self._lock:
            self._probing = False
            if alive:
                self._failed_in_a_row, self._closed_again_at = 0, None
                return
            self._failed_in_a_row += 1
            if self._failures and self._failed_in_a_row >= self._failures:
                self._closed_again_at = self._clock() + self._seconds
