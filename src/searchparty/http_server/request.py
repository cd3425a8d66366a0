"""A request as its connection sees it, and the bytes of a reply's head. Parses and sends nothing."""

from __future__ import annotations

import logging
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote

import httptools

from searchparty.http_server.asgi import Headers, RequestError
from searchparty.http_server.exchange import JSON, Exchange

if TYPE_CHECKING:
    from searchparty.http_server.connection import Connection

KNOWN_HEADERS = {b"authorization", b"content-length", b"expect"}

_log = logging.getLogger("uvicorn.error")


class Request(Exchange):
    """A request as the connection sees it.

    Attributes:
        headers: those of `KNOWN_HEADERS` that it has.
        keep_alive: whether another request may follow.
        body: what has come of it.
        complete: whether all of it has come.
        refusal: what is replied instead of an answer.
        over: the reply is written, or nobody waits for it.
    """

    __slots__ = ("body", "complete", "connection", "headers", "keep_alive", "over", "refusal")

    def __init__(self, connection: Connection, method: str, path: str, headers: dict[bytes, bytes], keep_alive: bool) -> None:
        super().__init__(method, path)
        self.connection = connection
        self.headers = headers
        self.keep_alive = keep_alive
        self.body: bytes | bytearray = b""
        self.complete = False
        self.refusal: RequestError | None = None
        self.over = False

    def respond(self, status: int, body: bytes, headers: Headers = (), content_type: bytes = JSON) -> None:
        """See `Exchange.respond`."""
        if not self.over:
            self.connection.write_reply(self, status, body, headers, content_type)

    def refuse(self, error: RequestError) -> None:
        """See `Exchange.refuse`."""
        if not self.over:
            self.connection.application.count_error(error.kind)
            self.respond(error.status, self.connection.application.error_body(error), error.headers)

    def fail(self, error: Exception) -> None:
        """See `Exchange.fail`."""
        _log.error("a request could not be answered", exc_info=error)
        self.refuse(RequestError(500, "this server has failed; see what it printed", "internal"))


@lru_cache(256)
def path_of(url: bytes) -> str | None:
    """The path of a request's address, without query and slash at its end; None if it cannot be read."""
    try:
        return unquote(httptools.parse_url(url).path.decode()).rstrip("/")
    except (httptools.HttpParserError, UnicodeDecodeError, AttributeError):
        return None


def reply_head(status: int, length: int, content_type: bytes, headers: Headers, keep_alive: bool) -> bytes:
    """All of a reply but its body of `length` bytes."""
    lines = [_status_line(status), b"content-type: ", content_type, b"\r\ncontent-length: %d\r\n" % length]
    for name, value in headers:
        lines += (name, b": ", value, b"\r\n")
    lines.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
    return b"".join(lines)


@lru_cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
