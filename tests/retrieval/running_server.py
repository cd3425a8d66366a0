"""A server in a thread of the test, on a free loopback port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from searchparty.retrieval.server import RetrievalServer
from searchparty.retrieval.serving import Server, bind
from searchparty.retrieval.types import Retriever


@contextmanager
def running(retriever: Retriever, passages: int | None, default_k: int = 3, **options: Any) -> Iterator[str]:
    """The address of a server that runs in a thread."""
    addresses: list[str] = []
    ready = threading.Event()

    def on_ready(address: str) -> None:
        addresses.append(address)
        ready.set()

    application = RetrievalServer(retriever, passages, default_k, **options)
    server = Server(application, bind("127.0.0.1", 0), on_ready)
    thread = threading.Thread(target=server.run_on_socket)
    thread.start()
    assert ready.wait(10)
    try:
        yield addresses[0]
    finally:
        server.should_exit = True
        thread.join(10)
