"""Requests per second of `retriever serve` with 1, 32 and 256 clients, beside the search behind it without HTTP.

    python bench/server.py [CORPUS] [--queries QUESTIONS.jsonl] [-k 3] [--seconds 5]

The server runs in a process of its own; all clients run in this one, on the same cores, so their cost lowers the figures. Each
client keeps one connection and sends one query at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from searchparty.files import read_jsonl
from searchparty.questions.sample import sample_corpus, sample_questions
from searchparty.retrieval.bm25 import BM25Index

CLIENTS = (1, 32, 256)


def http_request(query: str, k: int, host: str) -> bytes:
    """A whole HTTP request as bytes: a client library would cost more than the server."""
    body = orjson.dumps({"queries": [query], "topk": k, "return_scores": True})
    head = f"POST /retrieve HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def client(address: str, requests: Iterator[bytes], until: float, latencies: list[float]) -> None:
    """Send requests one after the other on one connection until the time is up."""
    target = urlsplit(address)
    reader, writer = await asyncio.open_connection(target.hostname, target.port)
    while time.perf_counter() < until:
        started = time.perf_counter()
        writer.write(next(requests))
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        latencies.append(time.perf_counter() - started)
    writer.close()


async def load(address: str, requests: Iterator[bytes], clients: int, seconds: float) -> list[float]:
    """The latencies of all requests that the clients made in the time."""
    latencies: list[float] = []
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client(address, requests, until, latencies) for _ in range(clients)))
    return latencies


def pure_search(index: BM25Index, queries: list[str], k: int) -> float:
    """Milliseconds of one search without HTTP, the best of three passes."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        for query in queries:
            index.search([query], k)
        seconds.append(time.perf_counter() - started)
    return 1000 * min(seconds) / len(queries)


def main() -> None:
    """Serve, load, print one table."""
    parser = argparse.ArgumentParser(description="Requests per second of the retrieval server.")
    parser.add_argument("corpus", nargs="?", type=Path, default=sample_corpus(), help="default: the sample in the package")
    parser.add_argument("--queries", type=Path, default=sample_questions(), help="JSON lines with a field 'question'")
    parser.add_argument("-k", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each number of clients (default: %(default)s)")
    options = parser.parse_args()
    queries = [str(record["question"]) for _, record in read_jsonl(options.queries)]

    with tempfile.TemporaryDirectory() as name:
        index = BM25Index.build(options.corpus, Path(name) / "index")
        milliseconds = pure_search(index, queries, options.k)
        command = [sys.executable, "-m", "searchparty.cli.main", "retriever", "serve", str(Path(name) / "index"), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = next(word for word in server.stdout.readline().split() if word.startswith("http://"))
            print(
                f"{len(index):,} passages, k = {options.k};"
                f" a search without HTTP: {milliseconds:.3f} ms ({1000 / milliseconds:,.0f}/s)"
            )
            print(f"{'clients':>8} {'requests/s':>11} {'of search':>10} {'median ms':>10} {'99 % ms':>9}")
            try:
                requests = itertools.cycle([http_request(query, options.k, urlsplit(address).netloc) for query in queries])
                asyncio.run(load(address, requests, 1, 0.5))
                for clients in CLIENTS:
                    latencies = asyncio.run(load(address, requests, clients, options.seconds))
                    rate = len(latencies) / options.seconds
                    median, tail = 1000 * statistics.median(latencies), 1000 * statistics.quantiles(latencies, n=100)[98]
                    print(f"{clients:>8} {rate:>11,.0f} {rate * milliseconds / 1000:>10.0%} {median:>10.2f} {tail:>9.2f}")
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
