"""A model server on loopback that answers as a test tells it to, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]
"""Status, body (JSON, or bytes sent as they are), and headers."""


class StubServer:
    """`respond(path, body)` gives each answer; `requests` are the bodies of all POST calls in order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.respond: Callable[[str, dict[str, Any]], Answer] = lambda path, body: (404, {})
        self.models: list[dict[str, Any]] = [{"id": "tiny", "max_model_len": 200}]


@contextmanager
def serve() -> Iterator[StubServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, {"data": stub.models})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            stub.requests.append(body)
            stub.headers.append(dict(self.headers))
            self._send(*stub.respond(self.path, body))

        def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"content-length": str(len(raw)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub = StubServer(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sleeping(seconds: float) -> Callable[[str, dict[str, Any]], Answer]:
    def respond(path: str, body: dict[str, Any]) -> Answer:
        time.sleep(seconds)
        return 200, {}

    return respond
