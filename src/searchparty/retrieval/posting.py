"""Sends JSON to a retrieval server over pooled connections. Knows no dialect."""

from __future__ import annotations

import time

import httpx

from searchparty.errors import FailureKind, ServiceFailure
from searchparty.http_calls import LOOPBACK, error_line, read_address, retry_after
from searchparty.retrieval.retrying import Patience, Retrying, Trouble

_LARGEST_REPLY = 256 * 1024 * 1024
_CONNECTIONS = 64


class Poster:
    """Posts to one address. Safe to use from several threads at once. See `Retrying` for what is tried again."""

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
        self._token = token
        self._retrying = Retrying(self.address, patience, token)
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token}"} if token else None,
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
            trust_env=parts.hostname not in LOOPBACK,
        )

    def post(self, path: str, body: bytes) -> tuple[bytes, int]:
        """The body of the first good reply and the number of attempts it took. Raises ServiceFailure."""
        return self._retrying.run(lambda deadline: self._post_once(path, body, deadline))

    def get(self, path: str, timeout: float) -> httpx.Response | None:
        """One quick question besides; None if there is no answer."""
        try:
            return self._client.get(f"{self.address}{path}", timeout=timeout)
        except httpx.HTTPError:
            return None

    def failure(self, kind: FailureKind, detail: str, attempts: int) -> ServiceFailure:
        """A failure of this server, without the token."""
        return self._retrying.failure(kind, detail, attempts)

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._client.close()

    def _post_once(self, path: str, body: bytes, deadline: float) -> bytes:
        try:
            status, reply, headers = self._send(path, body, deadline)
        except httpx.TimeoutException:
            seconds = self._retrying.patience.timeout
            raise Trouble(FailureKind.TIMEOUT, f"no complete reply within {seconds:g} s") from None
        except httpx.DecodingError as error:
            raise Trouble(FailureKind.MALFORMED_REPLY, f"{type(error).__name__}: {error}", alive=True) from None
        except httpx.TransportError as error:
            raise Trouble(FailureKind.UNREACHABLE, f"{type(error).__name__}: {error}") from None
        if status != 200:
            raise Trouble.of_status(status, error_line(reply, self._token), retry_after(headers))
        return reply

    def _send(self, path: str, body: bytes, deadline: float) -> tuple[int, bytes, httpx.Headers]:
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
                    raise Trouble(FailureKind.MALFORMED_REPLY, f"the reply is longer than {_LARGEST_REPLY} bytes", alive=True)
            return response.status_code, bytes(received), response.headers
