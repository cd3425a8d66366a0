"""Requests per second and latency of `retriever serve` with 1, 32 and 256 clients, beside a plain FastAPI server of Search-R1's
shape over the same index (`plain_server.py`), and beside the search behind both without HTTP.

    python bench/server.py [CORPUS] [--queries QUESTIONS.jsonl] [-k 3] [--seconds 5] [--batch 1] [--workers 1] [--processes 1]
        [--repeats 1]

The plain server is one process, as Search-R1's is; `--workers` are those of `retriever serve`. The clients run on the same
machine, in `--processes` of their own, so where cores are short their cost lowers the figures. The servers take turns for each
number of clients. `searching` remembers no answers, so that every query is searched for, as with the plain server;
`remembering` is the default of `retriever serve` and meets queries that it has answered before, as those of a group's episodes
and of later epochs are. `of search` is the rate as a share of what searching alone, without HTTP, reaches in one thread of one
process. All are measured `--repeats` times in turn; the medians are shown.
`CPU ms` is what the server's processes spent on a request; it depends less on what else the machine does. Linux only.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import orjson
from server_load import Clients

from searchparty.files import read_jsonl
from searchparty.questions.sample import sample_corpus, sample_questions
from searchparty.retrieval.bm25 import BM25Index

CLIENTS = (1, 32, 256)
WARMING_SECONDS = 3.0
"""Of load before anything is measured: compiled scoring is loaded in it."""


def http_request(queries: list[str], k: int, host: str) -> bytes:
    """A whole HTTP request as bytes: a client library would cost more than the server."""
    body = orjson.dumps({"queries": queries, "topk": k, "return_scores": True})
    head = f"POST /retrieve HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def pure_search(index: BM25Index, queries: list[str], k: int, seconds: float) -> tuple[float, float]:
    """Milliseconds of one search without HTTP, and those of CPU, over so many seconds of searching one query at a time."""
    started, cpu_started, searched = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - started < seconds:
        for query in queries:
            index.search([query], k)
        searched += len(queries)
    return 1000 * (time.perf_counter() - started) / searched, 1000 * (time.process_time() - cpu_started) / searched


@contextmanager
def running(command: list[str]) -> Iterator[int]:
    """The number of a server process."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL) as server:
        try:
            yield server.pid
        finally:
            server.terminate()


def wait_for(address: str) -> None:
    """Until something listens there."""
    target = urlsplit(address)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((str(target.hostname), target.port or 0)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{address}: no server after a minute")


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Figures:
    """Requests per second, latencies in milliseconds, and CPU milliseconds of the server per request."""

    rate: float
    median: float
    tail: float
    cpu: float


def cpu_seconds(server: int) -> float:
    """Spent by a server and its workers so far."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    # Behind the name in brackets, which may hold spaces, user and system time are the 12th and 13th fields; see proc(5).
    fields = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in (server, *children)]
    return sum(int(user) + int(system) for *_, user, system in (row[:13] for row in fields)) / os.sysconf("SC_CLK_TCK")


def measure(server: int, address: str, requests: Sequence[bytes], clients: int, seconds: float, pool: Clients) -> Figures:
    """Load a server with so many clients, after half a second that is not counted."""
    pool.load(address, requests, clients, 0.5)
    before = cpu_seconds(server)
    latencies = pool.load(address, requests, clients, seconds)
    cpu = 1000 * (cpu_seconds(server) - before) / len(latencies)
    tail = statistics.quantiles(latencies, n=100)[98]
    return Figures(len(latencies) / seconds, 1000 * statistics.median(latencies), 1000 * tail, cpu)


def middle(repeats: Sequence[Figures]) -> Figures:
    """The median of each figure."""
    return Figures(*(statistics.median(column) for column in zip(*map(astuple, repeats), strict=True)))


def main() -> None:
    """Serve, load, print one table."""
    parser = argparse.ArgumentParser(description="Requests per second of the retrieval server.")
    parser.add_argument("corpus", nargs="?", type=Path, default=sample_corpus(), help="default: the sample in the package")
    parser.add_argument("--queries", type=Path, default=sample_questions(), help="JSON lines with a field 'question'")
    parser.add_argument("-k", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="for each server and number of clients (default: %(default)s)"
    )
    parser.add_argument("--batch", type=int, default=1, help="queries in a request (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes of `retriever serve` (default: %(default)s)")
    parser.add_argument("--processes", type=int, help="processes that play the clients (default: as many as --workers)")
    parser.add_argument("--repeats", type=int, default=1, help="measurements of each, in turn (default: %(default)s)")
    options = parser.parse_args()
    queries = [str(record["question"]) for _, record in read_jsonl(options.queries)]
    bodies = [[queries[(start + place) % len(queries)] for place in range(options.batch)] for start in range(len(queries))]

    with tempfile.TemporaryDirectory() as name, ExitStack() as servers, Clients(options.processes or options.workers) as pool:
        folder = Path(name) / "index"
        index = BM25Index.build(options.corpus, folder)
        index.prepare(wait=True)
        ours = ["-m", "searchparty", "retriever", "serve", str(folder), "--workers", str(options.workers), "--port"]
        commands = {
            "plain FastAPI": lambda port: [str(Path(__file__).with_name("plain_server.py")), str(folder), port],
            "searching": lambda port: [*ours, port, "--memory-mb", "0"],
            "remembering": lambda port: [*ours, port],
        }
        ports = {name: str(free_port()) for name in commands}
        processes = {name: servers.enter_context(running(command(ports[name]))) for name, command in commands.items()}
        addresses = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        requests = {
            name: [http_request(queries, options.k, urlsplit(address).netloc) for queries in bodies]
            for name, address in addresses.items()
        }
        for name, address in addresses.items():
            wait_for(address)
            pool.load(address, requests[name], 8 * options.workers, WARMING_SECONDS)
        print(f"{len(index):,} passages, k = {options.k}, {len(queries):,} different queries, {options.batch} in a request")
        names = ("requests/s", "of plain", "of search", "median ms", "99 % ms", "CPU ms")
        print(f"{'clients':>8}  {'server':<14} " + " ".join(f"{name:>10}" for name in names))
        for clients in CLIENTS:
            plain = 0.0
            measured: dict[str, list[Figures]] = {name: [] for name in addresses}
            pure: list[tuple[float, float]] = []
            for _ in range(options.repeats):
                pure.append(pure_search(index, queries, options.k, options.seconds))
                for name, address in addresses.items():
                    measured[name].append(measure(processes[name], address, requests[name], clients, options.seconds, pool))
            milliseconds, cpu = (options.batch * statistics.median(column) for column in zip(*pure, strict=True))
            print(f"{'':>8}  without HTTP   {1000 / milliseconds:>10,.0f} {'':>54} {cpu:>10.3f}")
            for name in addresses:
                found = middle(measured[name])
                plain = plain or found.rate
                print(
                    f"{clients:>8}  {name:<14} {found.rate:>10,.0f} {found.rate / plain:>9.1f}x"
                    f" {found.rate * milliseconds / 1000:>10.0%} {found.median:>10.2f} {found.tail:>10.2f} {found.cpu:>10.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
