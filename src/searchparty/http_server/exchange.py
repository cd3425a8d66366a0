"""One request and its reply, for an application that answers by calls instead of in tasks. Knows no socket."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from searchparty.http_server.application import Served
from searchparty.http_server.asgi import Bodies, Headers, RequestError

JSON = b"application/json"


class Exchange(ABC):
    """A request, and the place where its reply goes.

    Attributes:
        method: in capitals.
        path: without query and without a slash at its end.
        arrived: when its head was there, of `time.perf_counter`.
        given_up: called if the client goes before the reply; the application sets it.
        ended: called once when the exchange is over in whatever way; the application sets it.
    """

    __slots__ = ("arrived", "ended", "given_up", "method", "path")

    def __init__(self, method: str, path: str) -> None:
        self.method = method
        self.path = path
        self.arrived = time.perf_counter()
        self.given_up: Callable[[], object] | None = None
        self.ended: Callable[[], object] | None = None

    @abstractmethod
    def respond(self, status: int, body: bytes, headers: Headers = (), content_type: bytes = JSON) -> None:
        """Send the whole reply. Does nothing if the client has gone or was answered."""

    @abstractmethod
    def refuse(self, error: RequestError) -> None:
        """Send a refusal as the reply, and count it."""

    @abstractmethod
    def fail(self, error: Exception) -> None:
        """The application is at fault: print the error, and reply with 500."""


class DirectApplication(Served):
    """An application without tasks: it is called with each request, and replies then or later by a call of its own."""

    def __init__(self, token: str | None, bodies: Bodies) -> None:
        """Args:
        token: see `Served`.
        bodies: the limits that connections keep.
        """
        super().__init__(token)
        self.bodies = bodies

    @abstractmethod
    def admit(self, exchange: Exchange) -> None:
        """The head of a request is there; its body may not be. Raises RequestError to refuse it."""

    @abstractmethod
    def answer(self, exchange: Exchange, body: bytes) -> None:
        """An admitted request is complete: send the reply now, or later out of the same event loop. Raises RequestError."""
