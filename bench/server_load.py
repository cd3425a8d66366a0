"""Many HTTP clients in few processes: each keeps one connection, with one request at a time. Does not know what is asked.

A bare protocol on a socket, since a client library would cost more than the server that is measured.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from types import TracebackType
from typing import cast
from urllib.parse import urlsplit


class _Client(asyncio.Protocol):
    """Sends the next request as soon as the answer to the last one is there, until the time is up."""

    def __init__(self, requests: Iterator[bytes], until: float, latencies: list[float]) -> None:
        self._requests, self._until, self._latencies = requests, until, latencies
        self._reply = bytearray()
        self._length = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        self._reply += data
        if not self._length and (end := self._reply.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._reply[:end]).lower()
            if not head.startswith(b"http/1.1 200"):
                self._finish(RuntimeError(self._reply.decode(errors="replace")))
                return
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
            self._length = end + 4 + int(length.split(b":")[1])
        if self._length and len(self._reply) >= self._length:
            self._latencies.append(time.perf_counter() - self._started)
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._finish(error or RuntimeError("the server closed the connection"))

    def _send(self) -> None:
        self._started = time.perf_counter()
        if self._started >= self._until:
            self._finish(None)
            self._transport.close()
            return
        self._reply.clear()
        self._length = 0
        self._transport.write(next(self._requests))

    def _finish(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None) if error is None else self.done.set_exception(error)


async def _load(address: str, requests: Iterator[bytes], clients: int, seconds: float) -> list[float]:
    target = urlsplit(address)
    latencies: list[float] = []
    until = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    connected = [
        await loop.create_connection(lambda: _Client(requests, until, latencies), target.hostname, target.port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.done for _, client in connected))
    return latencies


def _load_in_process(address: str, requests: Sequence[bytes], first: int, clients: int, seconds: float) -> list[float]:
    endless = itertools.islice(itertools.cycle(requests), first, None)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_load(address, endless, clients, seconds))
    return uvloop.run(_load(address, endless, clients, seconds))


class Clients:
    """Processes that play clients; they are started once, so that starting does not count."""

    def __init__(self, processes: int) -> None:
        """Start.

        Args:
            processes: over which the clients are spread.
        """
        self._processes = processes
        self._pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> Clients:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._pool.shutdown()

    def load(self, address: str, requests: Sequence[bytes], clients: int, seconds: float) -> list[float]:
        """The latencies in seconds of all requests that so many clients made in the time.

        Args:
            address: of the server.
            requests: whole HTTP requests; each process begins at another one and goes round.
            clients: in all processes together.
            seconds: for how long new requests are sent.
        """
        shares = [clients // self._processes + (place < clients % self._processes) for place in range(self._processes)]
        runs = [
            self._pool.submit(_load_in_process, address, requests, place * len(requests) // len(shares), share, seconds)
            for place, share in enumerate(shares)
            if share
        ]
        return [latency for run in runs for latency in run.result()]
