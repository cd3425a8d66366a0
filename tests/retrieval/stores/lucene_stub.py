"""A small HTTP server on loopback that answers as OpenSearch and Elasticsearch do, as far as a store asks.

A passage's score is the number of a query's words that its contents hold. Documents are found once they are refreshed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class LuceneStub:
    """A running server, what it holds, and what it was asked."""

    url: str = ""
    indices: dict[str, dict[str, Any]] = field(default_factory=dict)
    documents: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    refreshed: set[str] = field(default_factory=set)
    searches: list[tuple[dict[str, list[str]], list[dict[str, Any]]]] = field(default_factory=list)
    authorizations: set[str | None] = field(default_factory=set)
    troubles: list[tuple[int, Any]] = field(default_factory=list)
    """Statuses and bodies to answer with first."""

    def answer(self, method: str, address: str, body: bytes) -> tuple[int, Any]:
        """Status and JSON for a request."""
        parts = urlsplit(address)
        index, _, action = parts.path.strip("/").partition("/")
        if self.troubles:
            return self.troubles.pop(0)
        if method == "PUT" and not action:
            self.indices[index] = json.loads(body)
            self.documents[index] = {}
            return 200, {"acknowledged": True}
        if index not in self.indices:
            return 404, {"error": {"type": "index_not_found_exception", "reason": "no such index"}, "status": 404}
        if method == "DELETE":
            del self.indices[index]
            return 200, {"acknowledged": True}
        if action == "_mapping" and method == "GET":
            return 200, {index: {"mappings": self.indices[index]["mappings"]}}
        if action == "_mapping":
            self.indices[index]["mappings"].update(json.loads(body))
            return 200, {"acknowledged": True}
        if action == "_refresh":
            self.refreshed.add(index)
            return 200, {"_shards": {}}
        lines = [json.loads(line) for line in body.splitlines()]
        if action == "_bulk":
            for action_line, document in zip(lines[::2], lines[1::2], strict=True):
                self.documents[index][action_line["index"]["_id"]] = document
            return 200, {"errors": False, "items": [{"index": {"status": 201}} for _ in lines[::2]]}
        assert action == "_msearch"
        self.searches.append((parse_qs(parts.query), lines[1::2]))
        return 200, {"responses": [self._search(index, search) for search in lines[1::2]]}

    def _search(self, index: str, search: dict[str, Any]) -> dict[str, Any]:
        words = set(search["query"]["match"]["contents"].lower().split())
        found = [
            (len(words & set(document["contents"].lower().split())), document)
            for document in (self.documents[index].values() if index in self.refreshed else ())
        ]
        best = sorted((entry for entry in found if entry[0]), key=lambda entry: (-entry[0], entry[1]["row"]))
        hits = [{"_score": float(score), "_source": document} for score, document in best[: search["size"]]]
        return {"hits": {"hits": hits}, "status": 200, "timed_out": False, "_shards": {"failed": 0}}


@contextmanager
def lucene_stub() -> Iterator[LuceneStub]:
    """A running stub."""
    stub = LuceneStub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            stub.authorizations.add(self.headers.get("Authorization"))
            status, answer = stub.answer(self.command, self.path, body)
            reply = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.send_header("X-Elastic-Product", "Elasticsearch")
            self.end_headers()
            self.wfile.write(reply)

        do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
