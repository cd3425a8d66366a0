"""Minutes or hours of load on `retriever serve` while its workers are killed: no answer may be wrong, none lost, memory flat.

    python bench/soak.py [CORPUS] [--queries QUESTIONS.jsonl] [--minutes 10] [--clients 256] [--pause 0.2] [--kill-every 15]

A client asks one query after the other and compares the ids that come back with those of the index. Where a connection breaks,
or 503 comes, it asks again; a query that has no answer after a minute is lost. One of two workers is killed again and again,
the other's memory is watched. At the end come, three times, as many requests at once as `--burst` says. Ends with 1 if anything
was wrong or lost, or if memory grew by more than a tenth, under load after its first third or from the first burst to the last.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import psutil
from server import free_port, http_request, running, wait_for

from searchparty.files import read_jsonl
from searchparty.http_server.listening import allow_many_connections
from searchparty.questions.sample import sample_corpus, sample_questions
from searchparty.retrieval.bm25 import BM25Index

PATIENCE = 60.0
BURSTS = 3
K = 3


class Soak:
    """The clients' view: what is right, and how often what happened."""

    def __init__(self, address: str, expected: dict[str, list[str]]) -> None:
        self._host, self._port = urlsplit(address).hostname, urlsplit(address).port
        self.expected = expected
        self.counts: Counter[str] = Counter()

    async def client(self, until: float, pause: float) -> None:
        """Ask until the time is up, on one connection as long as it holds."""
        connection = None
        while time.monotonic() < until:
            query = random.choice(list(self.expected))
            connection = await self.ask(query, connection)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
        if connection is not None:
            connection[1].close()

    async def ask(
        self, query: str, connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """One query until it is answered; the connection for the next one."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                if connection is None:
                    connection = await asyncio.open_connection(self._host, self._port)
                async with asyncio.timeout(PATIENCE):
                    status, body = await self._exchange(query, *connection)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                self.counts["broken connections"] += 1
                if connection is not None:
                    connection[1].close()
                connection = None
                await asyncio.sleep(0.05)
                continue
            if status == 200:
                [documents] = orjson.loads(body)["result"]
                right = [entry["document"]["id"] for entry in documents] == self.expected[query]
                self.counts["answers" if right else "wrong answers"] += 1
                return connection
            self.counts[f"status {status}"] += 1
            await asyncio.sleep(1.0)
        self.counts["lost"] += 1
        return connection

    async def _exchange(self, query: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[int, bytes]:
        writer.write(http_request([query], K, f"{self._host}:{self._port}"))
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return int(head.split(b" ")[1]), await reader.readexactly(int(length.split(b":")[1]))


async def kill_and_watch(server: psutil.Process, until: float, every: float, counts: Counter[str]) -> list[float]:
    """Kill the youngest worker now and then; the memory of the eldest in MB, which lives all the time, before each kill."""
    grown: list[float] = []
    while time.monotonic() + every < until:
        await asyncio.sleep(every)
        workers = sorted(server.children(), key=psutil.Process.create_time)
        grown.append(workers[0].memory_full_info().uss / 1e6)
        if len(workers) > 1:
            workers[-1].kill()
            counts["workers killed"] += 1
    return grown


async def put_under_load(soak: Soak, server: psutil.Process, options: argparse.Namespace) -> tuple[list[float], list[float]]:
    """The whole load, then the bursts; the memory of the worker that is never killed, during the load and after each burst."""
    until = time.monotonic() + 60 * options.minutes
    watch = asyncio.create_task(kill_and_watch(server, until, options.kill_every, soak.counts))
    await asyncio.gather(*(soak.client(until, options.pause) for _ in range(options.clients)))
    grown = await watch
    eldest = min(server.children(), key=psutil.Process.create_time)
    after_bursts = []
    for _ in range(BURSTS):
        queries = random.choices(list(soak.expected), k=options.burst)
        for connection in await asyncio.gather(*(soak.ask(query, None) for query in queries)):
            if connection is not None:
                connection[1].close()
        after_bursts.append(eldest.memory_full_info().uss / 1e6)
    return grown, after_bursts


def main() -> None:
    """Serve, load, kill, print what happened."""
    parser = argparse.ArgumentParser(description="A soak of the retrieval server with kills of its workers.")
    parser.add_argument("corpus", nargs="?", type=Path, default=sample_corpus(), help="default: the sample in the package")
    parser.add_argument("--queries", type=Path, default=sample_questions(), help="JSON lines with a field 'question'")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two queries of a client")
    parser.add_argument("--kill-every", type=float, default=15.0, help="seconds between two kills")
    parser.add_argument("--burst", type=int, default=10_000, help="requests at once at the end")
    options = parser.parse_args()
    queries = [str(record["question"]) for _, record in read_jsonl(options.queries)]

    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name) / "index", free_port()
        index = BM25Index.build(options.corpus, folder)
        found = zip(queries, index.search(queries, K), strict=True)
        expected = {query: [hit.passage.id for hit in hits] for query, hits in found}
        command = ["-m", "searchparty", "retriever", "serve", str(folder), "--port", str(port), "--workers", "2"]
        with running([*command, "--memory-mb", "1"]) as process:
            wait_for(f"http://127.0.0.1:{port}")
            load = Soak(f"http://127.0.0.1:{port}", expected)
            started = time.monotonic()
            grown, after_bursts = asyncio.run(put_under_load(load, psutil.Process(process), options))
            seconds = time.monotonic() - started
    for what, count in sorted(load.counts.items()):
        print(f"{what:<20} {count:>10,}")
    print(f"{'answers/s':<20} {load.counts['answers'] / seconds:>10,.0f}")
    for what, megabytes in (("MB under load", grown), ("MB after bursts", after_bursts)):
        print(f"{what:<20} " + " ".join(f"{number:.0f}" for number in megabytes))
    flat = max(grown) <= 1.1 * grown[len(grown) // 3] and after_bursts[-1] <= 1.1 * after_bursts[0]
    sys.exit(1 if load.counts["wrong answers"] or load.counts["lost"] or not flat else 0)


if __name__ == "__main__":
    allow_many_connections()
    main()
