"""Several server processes: they share a port and their counts, a killed one is replaced, and no answer is lost or wrong."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from retrieval_factories import DATA, ids

from searchparty.cli.main import main
from searchparty.errors import UserError
from searchparty.http_server.listening import bind, bind_each
from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.remote import RemoteRetriever
from searchparty.retrieval.retrying import Patience
from searchparty.retrieval.workers import Supervisor


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workers") / "index"
    BM25Index.build(DATA / "passages.jsonl", folder)
    return folder


@contextmanager
def serving(folder: Path, *options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The supervisor of two workers, and their address."""
    command = [
        sys.executable,
        "-m",
        "searchparty",
        "retriever",
        "serve",
        str(folder),
        "--port",
        "0",
        "--workers",
        "2",
        *options,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], 60)[0]
            found = re.search(r"(http://127\.0\.0\.1:\d+)/retrieve", process.stdout.readline())
            assert found
            yield process, found[1]
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(60)


def workers_of(supervisor: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(supervisor.pid).children()


def eventually(condition: object, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_killed_workers_are_replaced_while_no_answer_is_lost_or_wrong(folder: Path) -> None:
    index = BM25Index(folder)
    queries = (DATA / "queries.txt").read_text(encoding="utf-8").splitlines()
    expected = {query: ids(hits) for query, hits in zip(queries, index.search(queries, 3), strict=True)}
    with serving(folder, "--memory-mb", "0") as (supervisor, address):
        first = {worker.pid for worker in workers_of(supervisor)}
        assert len(first) == 2
        remote = RemoteRetriever(address, patience=Patience(timeout=60, attempts=50, break_after=0))
        wrong: list[object] = []
        stop = threading.Event()

        def ask(place: int) -> None:
            while not stop.is_set():
                query = queries[place % len(queries)]
                try:
                    if ids(remote.search([query], 3)[0]) != expected[query]:
                        wrong.append(query)
                except Exception as error:
                    wrong.append(error)
                place += 1

        threads = [threading.Thread(target=ask, args=(place,)) for place in range(8)]
        for thread in threads:
            thread.start()
        for pid in first:
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: len({worker.pid for worker in workers_of(supervisor)} - first) > 0)
            time.sleep(0.5)
        stop.set()
        for thread in threads:
            thread.join(60)
        assert wrong == []
        assert not first & {worker.pid for worker in workers_of(supervisor)}
        time.sleep(0.2)


def test_any_worker_tells_the_counts_of_all(folder: Path) -> None:
    with serving(folder) as (_, address):
        for _ in range(20):
            # A connection of its own each time, so that the kernel may choose either worker.
            assert httpx.post(f"{address}/retrieve", json={"queries": ["director"]}, trust_env=False).status_code == 200
        seen = {httpx.get(f"{address}/metrics", trust_env=False).text for _ in range(10)}
    assert len(seen) == 1
    assert 'searchparty_requests_total{endpoint="/retrieve"} 20\n' in seen.pop()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_to_the_supervisor_stops_all(folder: Path, sent: signal.Signals, code: int) -> None:
    with serving(folder) as (supervisor, _):
        workers = workers_of(supervisor)
        supervisor.send_signal(sent)
        assert supervisor.wait(60) == code
        assert not [worker for worker in workers if worker.is_running()]


def test_workers_end_when_their_supervisor_is_killed(folder: Path) -> None:
    with serving(folder) as (supervisor, address):
        workers = workers_of(supervisor)
        supervisor.kill()
        eventually(lambda: not [worker for worker in workers if worker.is_running()])
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{address}/health", trust_env=False)


def test_every_worker_asks_for_the_token(folder: Path) -> None:
    with serving(folder, "--require-token", SEARCHPARTY_RETRIEVER_TOKEN="s3cret") as (_, address):
        assert {httpx.post(f"{address}/retrieve", json={"queries": ["x"]}, trust_env=False).status_code for _ in range(10)} == {
            401
        }
        assert RemoteRetriever(address, token="s3cret").search(["director"], 1)[0]


def test_sockets_on_one_port_are_shared_only_among_themselves() -> None:
    sockets = bind_each("127.0.0.1", 0, 3)
    port = sockets[0].getsockname()[1]
    assert {listener.getsockname()[1] for listener in sockets} == {port}
    with pytest.raises(UserError, match="port is in use"):
        bind("127.0.0.1", port)
    with pytest.raises(UserError, match="port is in use"):
        bind_each("127.0.0.1", port, 2)
    for listener in sockets:
        listener.close()


def supervisor_of(program: str, listener: socket.socket) -> Supervisor:
    return Supervisor(lambda inheritance: [sys.executable, "-c", program], [listener], 8, lambda: None)


def test_a_worker_that_cannot_live_ends_the_supervisor_with_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with bind("127.0.0.1", 0) as listener, pytest.raises(UserError, match="worker 0: ended 5 times at once, last with code 3"):
        supervisor_of("raise SystemExit(3)", listener).run()
    assert capfd.readouterr().err.count("starting another") == 4


def test_a_fault_of_the_input_ends_the_supervisor_at_once() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert supervisor_of("raise SystemExit(2)", listener).run() == 2


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--workers", "0"], "a whole number from 1"),
        (["--memory-mb", "-1"], "a whole number from 0"),
        (["--require-token"], "SEARCHPARTY_RETRIEVER_TOKEN"),
        (["--workers", "2"], "no such index folder"),
    ],
)
def test_bad_options_end_with_2(
    arguments: list[str], fault: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SEARCHPARTY_RETRIEVER_TOKEN", raising=False)
    try:
        code = main(["retriever", "serve", str(tmp_path / "missing"), *arguments])
    except SystemExit as ending:
        code = ending.code  # type: ignore[assignment]
    assert code == 2
    assert fault in capsys.readouterr().err
