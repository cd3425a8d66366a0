"""What an HTTP application needs between a socket and its own work: bodies read within limits, answers, refusals.

ASGI without a framework; see the ASGI specification for scopes and messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import orjson

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

READING_SECONDS = 30.0
"""How long a client may take to send a body."""


class RequestError(Exception):
    """A request that is answered with an HTTP status and one line.

    Attributes:
        status: of the answer.
        kind: the word under which it is counted.
        headers: of the answer, besides the usual ones.
    """

    def __init__(self, status: int, reason: str, kind: str, headers: Headers = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.kind = kind
        self.headers = headers


class ClientGone(Exception):
    """The connection was closed before the answer was ready: nobody waits for one."""


class Bodies:
    """Bounds request bodies: no single one, and not all that are held at one time together, may grow without limit."""

    def __init__(self, longest: int, together: int) -> None:
        """Args:
        longest: most bytes of one body.
        together: most bytes of all bodies that are held.
        """
        self._longest = longest
        self._together = together
        self._held = 0

    def announce(self, length: bytes) -> None:
        """A body of this `content-length` is going to come. Raises RequestError 413 if that is too long."""
        if length.isdigit() and int(length) > self._longest:
            raise self._too_long()

    def take(self, before: int, more: int) -> None:
        """More bytes of a body have come, and count as held even if they are refused.

        Args:
            before: bytes of this body that were there already.
            more: bytes that have come.

        Raises:
            RequestError: 413 if the body is too long now, 503 if too much is held.
        """
        self._held += more
        if before + more > self._longest:
            raise self._too_long()
        if self._held > self._together:
            raise overloaded("too many bytes of requests are being held")

    def let_go(self, length: int) -> None:
        """So many bytes are held no more."""
        self._held -= length

    @asynccontextmanager
    async def read(self, scope: Scope, receive: Receive) -> AsyncIterator[bytes]:
        """The whole body, which counts as held until the block ends.

        Raises:
            RequestError: 413 as soon as it is known to be too long, 503 if too much is held, 408 if it comes too slowly.
            ClientGone: it never came.
        """
        body = bytearray()
        try:
            try:
                async with asyncio.timeout(READING_SECONDS):
                    await self._fill(body, scope, receive)
            except TimeoutError:
                raise too_slow() from None
            yield bytes(body)
        finally:
            self.let_go(len(body))

    async def _fill(self, body: bytearray, scope: Scope, receive: Receive) -> None:
        self.announce(next((value for name, value in scope["headers"] if name == b"content-length"), b"0"))
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk = message.get("body", b"")
            body += chunk
            self.take(len(body) - len(chunk), len(chunk))
            if not message.get("more_body", False):
                return

    def _too_long(self) -> RequestError:
        return RequestError(413, f"the body is longer than {self._longest} bytes; send less at a time", "too_large")


async def disconnected(receive: Receive) -> None:
    """Wait until the client has closed the connection; its body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_disconnected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which is cancelled when its client goes. Raises ClientGone then, after the work has ended."""
    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(disconnected(receive))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is. Raises RequestError 400 if it is none."""
    try:
        record = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"the body is not valid JSON: {error}") from None
    if not isinstance(record, dict):
        raise bad_request("the body must be a JSON object")
    return record


def flag(record: Mapping[str, Any], name: str) -> bool:
    """A field that is true, false, null or not there. Raises RequestError 400 if it is anything else."""
    value = record.get(name)
    if value is not None and not isinstance(value, bool):
        raise bad_request(f"{name!r} must be true or false")
    return bool(value)


def bad_request(reason: str) -> RequestError:
    """The refusal of a request that is not as it must be."""
    return RequestError(400, reason, "bad_request")


def too_slow() -> RequestError:
    """The refusal of a request that did not come in time."""
    return RequestError(408, f"the body did not come within {READING_SECONDS:g} s", "slow_body")


def overloaded(reason: str) -> RequestError:
    """The refusal of a request that there is no room for now."""
    return RequestError(503, f"{reason}; try again in a moment", "overloaded", ((b"retry-after", b"1"),))


def require_method(method: str, allowed: str) -> None:
    """Raises RequestError 405 for any other method."""
    if method != allowed:
        raise RequestError(405, f"{method} is not allowed here; use {allowed}", "not_found", ((b"allow", allowed.encode()),))


async def respond(
    send: Send, status: int, body: bytes, headers: Headers = (), content_type: bytes = b"application/json"
) -> None:
    """Send a whole answer."""
    length = str(len(body)).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", content_type), (b"content-length", length), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})
