"""JSON over HTTP to a model server: one deadline per request, bounded retries, bounded replies, typed failures.

Knows HTTP; does not know what is asked. The API key comes from the environment and is blotted out of every message.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from typing import Any

import httpx

from searchparty.errors import Failure, FailureKind
from searchparty.http_calls import LOOPBACK, blot, error_line, read_address, retry_after

KEY_VARIABLES = ("SEARCHPARTY_API_KEY", "OPENAI_API_KEY")
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 20.0
"""Seconds before the second attempt, doubled each time, and the most; half of it is random."""
LARGEST_REPLY = 2**26
"""Bytes; a reply that goes on beyond this is given up."""


class Endpoint:
    """One server's base address, such as `http://host:8000/v1`. Connections are pooled and belong to one event loop."""

    def __init__(self, url: str, *, timeout: float = 120.0, attempts: int = 5, connections: int = 256) -> None:
        """`timeout` in seconds covers a request with all its attempts and pauses."""
        parts = read_address(url, KEY_VARIABLES[0])
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.attempts = attempts
        self._key = next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), None)
        self._options: dict[str, Any] = {
            "headers": {"Authorization": f"Bearer {self._key}"} if self._key else {},
            "timeout": timeout,
            "trust_env": parts.hostname not in LOOPBACK,
        }
        self._limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        self._client: httpx.AsyncClient | None = None

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | Failure:
        """Send `body` until a reply comes, the attempts are used up or the time is over. Never raises for a failing server."""
        attempt = 0
        failure = self.failure(FailureKind.TIMEOUT, f"no complete reply in {self.timeout:g} s", 1)
        try:
            async with asyncio.timeout(self.timeout) as limit:
                while attempt < self.attempts:
                    attempt += 1
                    reply, pause = await self._attempt(path, body, attempt)
                    if not isinstance(reply, Failure) or pause is None:
                        return reply
                    failure = reply
                    if asyncio.get_running_loop().time() + pause >= (limit.when() or 0.0):
                        return failure
                    if attempt < self.attempts:
                        await asyncio.sleep(pause)
        except TimeoutError:
            return self.failure(FailureKind.TIMEOUT, f"no complete reply in {self.timeout:g} s", attempt)
        return failure

    def ask_once(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | Failure:
        """One request without retries, outside any event loop: for finding out what a server offers."""
        with httpx.Client(**{**self._options, "timeout": min(self.timeout, 30.0)}) as client:
            try:
                response = client.request(method, self.url + path, json=body)
            except httpx.TransportError as error:
                return self.failure(FailureKind.UNREACHABLE, _words(error), 1)
            return self._read(response.status_code, response.content, 1)

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def failure(self, kind: FailureKind, detail: str, attempts: int) -> Failure:
        """A failure of this endpoint, in one line and without the key."""
        line = " ".join(blot(f"{self.url}: {detail}", self._key).split())
        return Failure("model", kind, line, attempts)

    async def _attempt(self, path: str, body: dict[str, Any], attempt: int) -> tuple[dict[str, Any] | Failure, float | None]:
        """The reply or failure of one attempt, and how long to pause before another (None: do not try again)."""
        if self._client is None:
            self._client = httpx.AsyncClient(**self._options, limits=self._limits)
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)) * (0.5 + random.random() / 2)
        try:
            async with self._client.stream("POST", self.url + path, json=body) as response:
                content = bytearray()
                async for part in response.aiter_bytes():
                    content += part
                    if len(content) > LARGEST_REPLY:
                        detail = f"a reply of more than {LARGEST_REPLY} bytes"
                        return self.failure(FailureKind.MALFORMED_REPLY, detail, attempt), None
        except httpx.TimeoutException:
            return self.failure(FailureKind.TIMEOUT, f"no complete reply in {self.timeout:g} s", attempt), pause
        except httpx.TransportError as error:
            return self.failure(FailureKind.UNREACHABLE, _words(error), attempt), pause
        except httpx.DecodingError as error:
            return self.failure(FailureKind.MALFORMED_REPLY, _words(error), attempt), None
        reply = self._read(response.status_code, bytes(content), attempt)
        if not isinstance(reply, Failure) or reply.kind not in (FailureKind.RATE_LIMITED, FailureKind.SERVER_ERROR):
            return reply, None
        return reply, max(pause, retry_after(response.headers) or 0.0)

    def _read(self, status: int, content: bytes, attempt: int) -> dict[str, Any] | Failure:
        start = error_line(content, self._key)
        if status == 429:
            return self.failure(FailureKind.RATE_LIMITED, f"HTTP 429: {start}", attempt)
        if status >= 500:
            return self.failure(FailureKind.SERVER_ERROR, f"HTTP {status}: {start}", attempt)
        if status == 400 and b"context length" in content:
            return self.failure(FailureKind.CONTEXT_OVERFLOW, f"HTTP 400: {start}", attempt)
        if not 200 <= status < 300:
            return self.failure(FailureKind.REJECTED, f"HTTP {status}: {start}", attempt)
        try:
            reply = json.loads(content)
        except (ValueError, RecursionError):
            return self.failure(FailureKind.MALFORMED_REPLY, f"not JSON: {start}", attempt)
        if not isinstance(reply, dict):
            return self.failure(FailureKind.MALFORMED_REPLY, f"not a JSON object: {start}", attempt)
        return reply


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
