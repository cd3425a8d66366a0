"""Counts what a served team does, and writes it in Prometheus' text format. Answers nothing itself."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from searchparty.costs.prices import Prices
from searchparty.costs.spending import spending_of
from searchparty.episodes.types import Episode, StopReason
from searchparty.http_server.prometheus import counter, header, histogram
from searchparty.serving.replies import failures_of

SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the latency buckets."""
TOKEN_CLASSES = ("uncached_input", "cached_input", "output")


class Metrics:
    """Numbers of one process, from its start."""

    def __init__(self, prices: Prices | None = None) -> None:
        self._prices = prices
        self._questions: Counter[tuple[str, ...]] = Counter()
        self._errors: Counter[tuple[str, ...]] = Counter()
        self._endings: Counter[tuple[str, ...]] = Counter({(reason.value,): 0 for reason in StopReason})
        self._failures: Counter[tuple[str, ...]] = Counter()
        self._tokens: Counter[tuple[str, ...]] = Counter()
        self._searches = 0
        self._usd = 0.0
        self._seconds = [0.0] * (len(SECONDS) + 2)

    def question(self, endpoint: str, seconds: float) -> None:
        """A question was answered, with an answer or with why there is none."""
        self._questions[endpoint,] += 1
        self._seconds[bisect_left(SECONDS, seconds)] += 1
        self._seconds[-1] += seconds

    def episode(self, episode: Episode) -> None:
        """An episode has ended. Tokens that a model does not tell are not counted."""
        spent = spending_of(episode)
        self._endings[episode.stop_reason.value,] += 1
        for failure in failures_of(episode):
            self._failures[failure.source, failure.kind.value] += 1
        for (role, _), tokens in spent.by_role.items():
            for name in TOKEN_CLASSES:
                self._tokens[role, name] += getattr(tokens, name) or 0
        self._searches += spent.searches
        self._usd += 0.0 if self._prices is None else spent.usd(self._prices) or 0.0

    def error(self, kind: str) -> None:
        """A request was not answered."""
        self._errors[kind,] += 1

    def text(self, under_way: int) -> bytes:
        """All numbers; `under_way` is that of the episodes that have not ended."""
        return "".join(line + "\n" for line in self._lines(under_way)).encode()

    def _lines(self, under_way: int) -> Iterator[str]:
        yield from counter("questions_total", "Questions that were answered.", ("endpoint",), self._questions)
        yield from histogram("question_seconds", "Seconds from a question to its answer.", SECONDS, self._seconds)
        yield from counter("episodes_total", "Episodes that have ended, by stop reason.", ("stop_reason",), self._endings)
        yield from counter("failures_total", "Failures of services in episodes.", ("source", "kind"), self._failures)
        yield from counter("tokens_total", "Tokens of models that tell them.", ("role", "class"), self._tokens)
        yield from counter("searches_total", "Searches that came back.", (), {(): self._searches})
        if self._prices is not None:
            yield from counter("usd_total", "What episodes cost by the file of prices.", (), {(): self._usd})
        yield from counter("errors_total", "Requests that were not answered, by kind.", ("kind",), self._errors)
        yield from header("episodes_under_way", "gauge", "Episodes that were accepted and have not ended.")
        yield f"searchparty_episodes_under_way {under_way}"
