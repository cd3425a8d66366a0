"""A small HTTP server on loopback that answers from a script, for tests of the client."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Reply:
    """One scripted reply. `delay` seconds pass before it; `trickle` seconds before each of its bytes."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    trickle: float = 0.0
    hang_up: bool = False


def results(*documents: Sequence[object]) -> Reply:
    """A good reply with these result lists."""
    return Reply(body=json.dumps({"result": documents}).encode())


@dataclass
class Stub:
    """A running server: its address and the requests it has had."""

    url: str
    requests: list[dict[str, object]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def stub_server(*replies: Reply) -> Iterator[Stub]:
    """Serve the replies in order; the last one is given for ever."""
    left = list(replies)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            stub.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            stub.paths.append(self.path)
            stub.headers.append({name.lower(): value for name, value in self.headers.items()})
            reply = left.pop(0) if len(left) > 1 else left[0]
            time.sleep(reply.delay)
            if reply.hang_up:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for place in range(len(reply.body)) if reply.trickle else ():
                    time.sleep(reply.trickle)
                    self.wfile.write(reply.body[place : place + 1])
                    self.wfile.flush()
                if not reply.trickle:
                    self.wfile.write(reply.body)
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub = Stub(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
