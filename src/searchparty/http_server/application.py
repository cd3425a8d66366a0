"""The frame of an application behind HTTP: its life, its token, its refusals. What it serves is the subclass's."""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod

from searchparty.http_server.asgi import ClientGone, Receive, RequestError, Scope, Send, respond


class Served(ABC):
    """What every application behind a server has, whichever way its requests come."""

    def __init__(self, token: str | None) -> None:
        """`token` is what every client must send as a bearer token, except to `/health`; None for no such thing."""
        self._token = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Live from ASGI's lifespan message of the start to that of the end."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    @abstractmethod
    def count_error(self, kind: str) -> None:
        """A request was not answered."""

    @abstractmethod
    def error_body(self, error: RequestError) -> bytes:
        """The JSON that is sent with the status of a refusal."""

    @abstractmethod
    async def close(self) -> None:
        """Free what is served; running requests have ended."""

    def check_token(self, path: str, sent: bytes) -> None:
        """Raises RequestError 401 if the value of `authorization` is not what this path asks for."""
        if self._token is None or path == "/health":
            return
        if not hmac.compare_digest(sent, self._token):
            header = (b"www-authenticate", b"Bearer")
            raise RequestError(
                401, "this server asks for a bearer token; send the one it was started with", "unauthorized", (header,)
            )


class Application(Served):
    """A bare ASGI application: no web framework between socket and work."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection scope as ASGI lays down."""
        if scope["type"] == "lifespan":
            await super().__call__(scope, receive, send)
        elif scope["type"] == "http":
            path = scope["path"].rstrip("/")
            try:
                self.check_token(path, next((value for name, value in scope["headers"] if name == b"authorization"), b""))
                await self.handle(path, scope, receive, send)
            except RequestError as error:
                self.count_error(error.kind)
                await respond(send, error.status, self.error_body(error), error.headers)
            except ClientGone:
                self.count_error("disconnected")

    @abstractmethod
    async def handle(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; `path` has no slash at its end.

        Raises:
            RequestError: what is answered instead.
            ClientGone: nobody waits for an answer any more.
        """
