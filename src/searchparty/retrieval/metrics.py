"""Counts what a server does, for several processes together, and writes it in Prometheus' text format (version 0.0.4).

All numbers lie in one array of float64, a row for each process, so that any of them can add up all rows. Each number is only
written by one thread of one process. Answers nothing itself.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from searchparty.errors import FailureKind
from searchparty.http_server.prometheus import counter, header, histogram
from searchparty.retrieval.wire import PATHS

ERROR_KINDS = (
    "bad_request",
    "unauthorized",
    "not_found",
    "slow_body",
    "too_large",
    "overloaded",
    "disconnected",
    "internal",
    *FailureKind,
)
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the latency buckets."""
BATCH_QUERIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Upper bounds of the batch-size buckets."""

_SIZES = {
    "requests": len(PATHS),
    "queries": 1,
    "remembered": 1,
    "errors": len(ERROR_KINDS),
    "seconds": len(SECONDS) + 2,
    "batches": len(BATCH_QUERIES) + 2,
    "waiting": 1,
}
_STARTS = dict(zip(_SIZES, np.cumsum([0, *_SIZES.values()]).tolist(), strict=False))
_WIDTH = sum(_SIZES.values())


def shared_bytes(processes: int) -> int:
    """Size of the memory that so many processes share."""
    return processes * _WIDTH * 8


class Metrics:
    """The numbers of one process, and the sums over all."""

    def __init__(self, memory: mmap.mmap | None = None, row: int = 0) -> None:
        """Args:
        memory: of `shared_bytes`, shared by all processes; None for a process that is alone.
        row: the number of this process; a process that takes the place of a dead one goes on with its counts.
        """
        rows = np.zeros(_WIDTH) if memory is None else np.frombuffer(memory, dtype=np.float64)
        self._rows: NDArray[np.float64] = rows.reshape(-1, _WIDTH)
        # A view adds to one number in a third of the time that numpy takes.
        self._own = memoryview(self._rows[row])
        self._own[_STARTS["waiting"]] = 0

    def request(self, endpoint: str, queries: int, remembered: int, seconds: float) -> None:
        """A request was answered. `remembered` of its queries were not searched for."""
        self._own[_STARTS["requests"] + PATHS.index(endpoint)] += 1
        self._own[_STARTS["queries"]] += queries
        self._own[_STARTS["remembered"]] += remembered
        self._observe("seconds", SECONDS, seconds)

    def error(self, kind: str) -> None:
        """A request was not answered."""
        self._own[_STARTS["errors"] + ERROR_KINDS.index(kind)] += 1

    def batch(self, queries: int) -> None:
        """So many queries are searched together."""
        self._observe("batches", BATCH_QUERIES, queries)

    def waiting(self, requests: int) -> None:
        """So many requests are under way now."""
        self._own[_STARTS["waiting"]] = requests

    def text(self) -> bytes:
        """All numbers of all processes."""
        return "".join(line + "\n" for line in self._lines()).encode()

    def _observe(self, name: str, bounds: Sequence[float], value: float) -> None:
        start = _STARTS[name]
        self._own[start + bisect_left(bounds, value)] += 1
        self._own[start + len(bounds) + 1] += value

    def _lines(self) -> Iterator[str]:
        total = self._rows.sum(axis=0)
        part = {name: total[_STARTS[name] : _STARTS[name] + size].tolist() for name, size in _SIZES.items()}
        requests: dict[tuple[str, ...], float] = {(path,): n for path, n in zip(PATHS, part["requests"], strict=True)}
        errors: dict[tuple[str, ...], float] = {(kind,): n for kind, n in zip(ERROR_KINDS, part["errors"], strict=True)}
        yield from counter("requests_total", "Requests that were answered.", ("endpoint",), requests)
        yield from counter("queries_total", "Queries of those requests.", (), {(): part["queries"][0]})
        yield from counter(
            "remembered_queries_total",
            "Queries whose answer was remembered and not searched for.",
            (),
            {(): part["remembered"][0]},
        )
        yield from counter("errors_total", "Requests that were not answered, by kind.", ("kind",), errors)
        yield from histogram(
            "request_seconds", "Seconds from a request's arrival until its answer was ready.", SECONDS, part["seconds"]
        )
        yield from histogram("batch_queries", "Queries that were searched together.", BATCH_QUERIES, part["batches"])
        yield from header("waiting_requests", "gauge", "Requests under way now.")
        yield f"searchparty_waiting_requests {part['waiting'][0]:.0f}"
        yield from header("workers", "gauge", "Processes that serve.")
        yield f"searchparty_workers {len(self._rows)}"
