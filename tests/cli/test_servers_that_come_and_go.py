"""Endpoint and retriever that are down when a run begins: recorded, then resumed as the tool itself advises."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


def searchparty(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "searchparty.cli.main", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


class Server(BaseHTTPRequestHandler):
    """A chat model that always answers Paris, and a retriever that always finds one passage."""

    def do_GET(self) -> None:
        self._send({"data": [{"id": "real"}]} if self.path.endswith("/models") else {"identity": "index 1"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "queries" in body:
            hit = {"document": {"id": "p", "contents": '"Paris"\nParis is the capital.'}, "score": 1.0}
            self._send({"result": [[hit] for _ in body["queries"]]})
        elif body["model"] == "real":
            said = {"message": {"content": "<answer>Paris</answer>"}, "finish_reason": "stop"}
            self._send({"choices": [said], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})
        else:
            self.send_error(404)

    def _send(self, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *arguments: object) -> None:
        """Silent."""


@contextmanager
def serving(port: int = 0) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", port), Server)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "q.jsonl"
    records = [
        {"id": str(n), "dataset": "nq", "question": f"What is the capital {n}?", "golden_answers": ["Paris"]} for n in range(3)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("down", ["model", "retriever", "both"])
def test_a_run_begun_while_a_server_was_down_is_finished_by_resuming_it(tmp_path: Path, questions: Path, down: str) -> None:
    with serving() as port:
        pass
    with serving() as other:
        model = f"http://127.0.0.1:{port if down != 'retriever' else other}/v1"
        index = f"http://127.0.0.1:{port if down != 'model' else other}"
        words = [
            "eval", "--team", "rag", "--model", model, "--index", index, "--questions", questions, "-o", tmp_path / "run",
            "model.timeout=3", "retriever.timeout=2", "retriever.attempts=2",
        ]  # fmt: skip
        first = searchparty(*words)
        assert first.returncode == 1, first.stderr
        assert "3 episodes were ended by a failing model or retriever" in first.stderr
        with serving(port):
            second = searchparty(*words, "--resume")
    assert second.returncode == 0, second.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["quality"]["macro"]["exact_match"]["value"] == 1.0
    assert summary["behaviour"]["all"]["output_tokens"] == 3
    environment = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert "#real" in environment["models"]["answerer"]
    assert "index 1" in environment["retriever"]
