"""Contract 12: no code in data, and no secret in anything written."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "searchparty"
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}


def python_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_contract_12_no_code_is_read_from_data(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_MODULES
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in FORBIDDEN_MODULES
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile", "__import__")
            if isinstance(node.func, ast.Attribute):
                called = ast.unparse(node.func)
                assert called not in ("torch.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "os.system")
            for keyword in node.keywords:
                if keyword.arg in ("allow_pickle", "trust_remote_code"):
                    assert ast.unparse(keyword.value) == "False"
                assert not (keyword.arg == "shell" and ast.unparse(keyword.value) == "True")


def test_contract_12_a_secret_is_in_no_file_and_on_no_screen_even_if_the_server_repeats_it(tmp_path: Path) -> None:
    secret = "sk-very-secret-value-123456"
    seen: list[str] = []

    class Echo(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            seen.append(self.headers.get("authorization", ""))
            body = f'{{"error": "no access with key {self.headers.get("authorization")}"}}'.encode()
            self.send_response(401)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *args: object) -> None:
            """Silent."""

    server = HTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id": "1", "dataset": "nq", "question": "Who?", "golden_answers": ["x"]}\n')
    command = [
        sys.executable, "-m", "searchparty.cli.main", "eval", "--team", "direct", "--questions", str(questions),
        "--model", f"http://127.0.0.1:{server.server_port}/v1#m", "-o", str(tmp_path / "run"), "model.route=chat",
    ]  # fmt: skip
    environment = {**os.environ, "SEARCHPARTY_API_KEY": secret}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    server.shutdown()
    assert any(secret in header for header in seen), "the key must reach the server"
    assert secret not in done.stdout + done.stderr
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert any(path.name == "eval.jsonl" for path in files), done.stderr
    for path in files:
        assert secret.encode() not in path.read_bytes()
