"""Runs an application on a socket until it is told to stop. Knows nothing of what it serves."""

from __future__ import annotations

import errno
import resource
import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn

from searchparty.errors import UserError
from searchparty.http_server.connection import Connection
from searchparty.http_server.exchange import DirectApplication

FINISHING_SECONDS = 30
_IDLE_SECONDS = 75
"""How long an idle connection is kept: longer than the pause between two steps of most agents."""


def bind_each(host: str, port: int, count: int) -> list[socket.socket]:
    """Listening sockets on one port, among which the kernel spreads connections. Raises UserError, see `bind`."""
    with bind(host, port) as probe:
        # Without the probe, another program that also shares the port would go unnoticed and take half of the connections.
        port = probe.getsockname()[1]
    return [bind(host, port, shared=True) for _ in range(count)]


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises UserError if the address cannot be had.

    Args:
        shared: other sockets of this user may listen on the same port.
    """
    if not 0 <= port <= 65535:
        raise UserError(f"--host {host} --port {port}: a port is a number from 0 to 65535; choose another port")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UserError(f"--host {host} --port {port}: no such address ({error}); give a host of this machine") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"--port {port}: port is in use on {host}; stop the other program or choose another port") from None
        raise UserError(f"--host {host} --port {port}: cannot listen there ({error}); choose another address") from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The address to give to clients."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def allow_many_connections() -> None:
    """Raise this process's limit of open files, and so of connections, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Server(uvicorn.Server):
    """uvicorn on a socket that is already bound, which says when it is ready."""

    def __init__(
        self,
        application: DirectApplication | Any,
        listener: socket.socket,
        ready: Callable[[str], None],
        finishing_seconds: int = FINISHING_SECONDS,
    ) -> None:
        """Args:
        application: a `DirectApplication`, or any ASGI one.
        ready: called with the address once requests are taken.
        finishing_seconds: how long running requests may still take after the first signal.
        """
        super().__init__(
            uvicorn.Config(
                application,
                http=partial(Connection, application) if isinstance(application, DirectApplication) else "auto",  # type: ignore[arg-type]
                access_log=False,
                proxy_headers=False,
                server_header=False,
                log_level="warning",
                timeout_keep_alive=_IDLE_SECONDS,
                timeout_graceful_shutdown=finishing_seconds,
                lifespan="on",
            )
        )
        self._listener = listener
        self._ready = ready
        self._interrupted = False

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to end."""
        self._interrupted |= sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            self._ready(address_of(self._listener))

    def run_on_socket(self) -> None:
        """Serve until a signal or `should_exit`; running requests are finished first.

        Returns after SIGTERM; raises KeyboardInterrupt after SIGINT.
        """
        # uvicorn raises each signal once more when it is done; for SIGTERM the orderly end is all there is left to do.
        previous = signal.signal(signal.SIGTERM, _take_note) if threading.current_thread() is threading.main_thread() else None
        try:
            self.run(sockets=[self._listener])
            if self._interrupted:  # where the parent process ignores SIGINT, uvicorn's is ignored too
                raise KeyboardInterrupt
        finally:
            if previous is not None:
                signal.signal(signal.SIGTERM, previous)


def _take_note(signal_number: int, frame: object) -> None:
    """Let a signal pass."""
