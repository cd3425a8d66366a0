"""HTTP/1.1 on one connection for a `DirectApplication`: parsed by llhttp, answered in order, without a task for each request.

A request that came in one piece is parsed, handed over and, if the reply is known, answered within one call of the event loop.
Requests that follow before the reply wait; nothing more is read then, nor while the client does not take its replies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.server import ServerState

from searchparty.http_server import asgi
from searchparty.http_server.asgi import Headers, RequestError, bad_request
from searchparty.http_server.exchange import DirectApplication
from searchparty.http_server.request import KNOWN_HEADERS, Request, path_of, reply_head

_LONGEST_HEAD = 64 * 1024
"""Bytes of request line and headers, about."""


class Connection(asyncio.Protocol):
    """What uvicorn's server makes for each connection, see `uvicorn.Config.http`."""

    def __init__(
        self,
        application: DirectApplication,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Args:
        application: answers the requests.
        config: how long an idle connection is kept.
        server_state: knows all connections, and the date.
        app_state: not used.
        """
        self.application = application
        self._state = server_state
        self._idle_seconds = float(config.timeout_keep_alive)
        self._loop = _loop or asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._waiting: deque[Request] = deque()
        self._answering: Request | None = None
        self._reading: Request | None = None
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._unread_head = 0  # bytes of an unfinished head, without those that came together with its first
        self._in_message = False
        self._clogged = False  # the client does not take its replies
        self._stopping = False  # the server is about to end
        self._deaf = False  # what still comes is thrown away
        self._advancing = False
        self._paused = False
        self._last_active = self._loop.time()
        self._idle_timer: asyncio.TimerHandle
        self._reading_timer: asyncio.TimerHandle | None = None

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._state.connections.add(self)  # type: ignore[arg-type]
        self._idle_timer = self._loop.call_later(self._idle_seconds, self._close_if_idle)

    def connection_lost(self, error: Exception | None) -> None:
        self._deaf = True
        self._state.connections.discard(self)
        self._idle_timer.cancel()
        self._stop_reading_timer()
        del self._parser
        unfinished = self._answering or self._reading
        if unfinished is not None and not unfinished.over:
            self.application.count_error("disconnected")
            if unfinished.given_up is not None:
                unfinished.given_up()
        for request in (self._answering, *self._waiting, self._reading):
            if request is not None:
                self._end(request)
        self._waiting.clear()

    def data_received(self, data: bytes) -> None:
        self._last_active = self._loop.time()
        rest = data
        while rest and not self._deaf:
            try:
                self._parser.feed_data(rest)
                break
            except httptools.HttpParserUpgrade as upgrade:
                # No other protocol is spoken here; the request itself is answered as any other.
                rest = rest[upgrade.args[0] :]
            except httptools.HttpParserError as error:
                self._break_off(bad_request(f"this is not HTTP/1.1: {error}"))
        if self._in_message and not self._deaf:
            self._see_to_unfinished(len(data))

    def pause_writing(self) -> None:
        self._clogged = True

    def resume_writing(self) -> None:
        self._clogged = False
        self._advance()

    def shutdown(self) -> None:
        """Called by the server at its end: a request that is under way is answered first."""
        self._stopping = True
        if self._answering is None:
            self._hang_up(lingering=False)

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._in_message = True
        self._url = b""
        self._headers = {}
        self._reading = None
        self._unread_head = -1

    def on_url(self, part: bytes) -> None:
        self._url += part

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in KNOWN_HEADERS:
            self._headers.setdefault(name, value)

    def on_headers_complete(self) -> None:
        if self._deaf:
            return
        keep_alive = self._parser.should_keep_alive() and self._parser.get_http_version() != "1.0"
        path = path_of(self._url)
        request = Request(self, self._parser.get_method().decode(), path or "", self._headers, keep_alive)
        if path is None:
            request.refusal = bad_request("the address of the request cannot be read")
        self._reading = request
        if self._answering is None and not self._waiting and not self._clogged:
            self._begin(request)
        else:
            self._waiting.append(request)
            self._pause()

    def on_body(self, part: bytes) -> None:
        request = self._reading
        if request is None or request.over or request.refusal is not None:
            return
        before = len(request.body)
        if before == 0:
            request.body = part
        elif isinstance(request.body, bytearray):
            request.body += part
        else:
            request.body = bytearray(request.body) + part
        try:
            self.application.bodies.take(before, len(part))
        except RequestError as error:
            request.refusal = error

    def on_message_complete(self) -> None:
        self._in_message = False
        self._stop_reading_timer()
        request, self._reading = self._reading, None
        if request is not None:
            request.complete = True
            if request is self._answering:
                self._answer(request)

    # Requests, one after the other.

    def _begin(self, request: Request) -> None:
        """Take up a request whose head is there."""
        self._answering = request
        if request.refusal is None:
            try:
                self.application.check_token(request.path, request.headers.get(b"authorization", b""))
                self.application.admit(request)
                self.application.bodies.announce(request.headers.get(b"content-length", b""))
            except RequestError as error:
                request.refusal = error
        if request.complete:
            self._answer(request)

    def _answer(self, request: Request) -> None:
        """Reply to a request that is complete, or one that is refused."""
        try:
            if request.refusal is not None:
                request.refuse(request.refusal)
            else:
                self.application.answer(request, bytes(request.body))
        except RequestError as error:
            request.refuse(error)
        except Exception as error:
            request.fail(error)

    def write_reply(self, request: Request, status: int, body: bytes, headers: Headers, content_type: bytes) -> None:
        """Send the reply of the request that is being answered, and go on to the next one."""
        keep_alive = request.keep_alive and request.complete and not self._stopping
        head = reply_head(status, len(body), content_type, (*self._state.default_headers, *headers), keep_alive)
        self._transport.write(head if request.method == "HEAD" else head + body)
        self._last_active = self._loop.time()
        self._end(request)
        self._answering = None
        if not keep_alive:
            self._hang_up(lingering=self._deaf or not request.complete)
        elif self._waiting:
            self._advance()

    def _end(self, request: Request) -> None:
        if request.over:
            return
        request.over = True
        self.application.bodies.let_go(len(request.body))
        if request.ended is not None:
            request.ended()

    def _advance(self) -> None:
        """Take up what waits, as far as the client takes the replies."""
        if self._advancing:
            return
        self._advancing = True
        while self._waiting and self._answering is None and not self._clogged:
            self._begin(self._waiting.popleft())
        self._advancing = False
        if self._paused and not self._waiting and not self._clogged and not self._deaf:
            self._paused = False
            self._transport.resume_reading()
            if self._in_message:
                self._see_to_unfinished(0)

    # Requests that are slow, bad or too many.

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()
            self._stop_reading_timer()

    def _see_to_unfinished(self, received: int) -> None:
        """Some of a request has come and not all of it: refuse it, ask for the rest, or wait for it."""
        request = self._reading
        if request is None:
            self._unread_head = 0 if self._unread_head < 0 else self._unread_head + received
            if self._unread_head > _LONGEST_HEAD:
                self._break_off(RequestError(431, f"the head is longer than {_LONGEST_HEAD} bytes", "too_large"))
                return
        elif request is self._answering:
            if request.refusal is not None:
                self._answer(request)
                return
            if not request.body and request.headers.pop(b"expect", b"").lower() == b"100-continue":
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self._reading_timer is None and not self._paused:
            self._reading_timer = self._loop.call_later(asgi.READING_SECONDS, self._too_slow)

    def _too_slow(self) -> None:
        self._reading_timer = None
        self._break_off(asgi.too_slow())

    def _break_off(self, error: RequestError) -> None:
        """Read no further; when what came before is answered, refuse the request that is being read, and hang up."""
        self._deaf = True
        self._in_message = False
        request, self._reading = self._reading, None
        if request is None:
            request = Request(self, "", "", {}, keep_alive=False)
            self._waiting.append(request)
        request.refusal = request.refusal or error
        if request is self._answering:
            self._answer(request)
        else:
            request.complete = True
            request.keep_alive = False
            self._advance()

    def _stop_reading_timer(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    def _hang_up(self, *, lingering: bool) -> None:
        """Close the connection; `lingering` gives a client that is still sending the time to read its reply."""
        self._deaf = True
        self._in_message = False
        self._stop_reading_timer()
        for request in self._waiting:
            self._end(request)
        self._waiting.clear()
        if self._stopping or not lingering:
            self._transport.close()
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._reading_timer = self._loop.call_later(asgi.READING_SECONDS, self._transport.abort)

    def _close_if_idle(self) -> None:
        """Close if nothing has come for long, unless an answer is being worked out."""
        left = self._last_active + self._idle_seconds - self._loop.time()
        if left <= 0 and self._answering is None:
            self._transport.abort()
        else:
            self._idle_timer = self._loop.call_later(left if left > 0 else self._idle_seconds, self._close_if_idle)
