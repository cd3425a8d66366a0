"""An application behind HTTP in a thread of the test, on a free loopback port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from searchparty.http_server.listening import Server, bind


@contextmanager
def running_application(application: Any) -> Iterator[str]:
    """The address of the application."""
    addresses: list[str] = []
    ready = threading.Event()

    def on_ready(address: str) -> None:
        addresses.append(address)
        ready.set()

    server = Server(application, bind("127.0.0.1", 0), on_ready)
    thread = threading.Thread(target=server.run_on_socket)
    thread.start()
    assert ready.wait(10)
    try:
        yield addresses[0]
    finally:
        server.should_exit = True
        thread.join(10)
