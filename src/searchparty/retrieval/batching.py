"""The front of a retriever for hundreds of episodes that run at once: queries that wait together are searched together.

Merging is greedy and has no timer: whatever arrived while the last batch was being searched, or in one turn of the event
loop, is the next batch. One thread does all searching, so the event loop never waits for an index or a server.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from searchparty.errors import Failure, FailureKind, ServiceFailure, UserError
from searchparty.retrieval.types import Hit, Retriever

Answer = list[list[Hit]] | ServiceFailure | UserError

_BLAMED_ON_ONE_QUERY = {FailureKind.REJECTED, FailureKind.SERVER_ERROR, FailureKind.MALFORMED_REPLY}
"""Failures that a single bad query can cause; the others would meet every query alike."""

_SEARCHES_FOR_BLAME = 32
"""Further searches after a failed one: enough to find a bad query among 256 by halving, and no flood for a failing server."""


class HandedIn:
    """Queries that wait for their answer."""

    __slots__ = ("given_up", "k", "loop", "queries", "settle")

    def __init__(
        self, queries: Sequence[str], k: int, loop: asyncio.AbstractEventLoop, settle: Callable[[Answer], object]
    ) -> None:
        self.queries = queries
        self.k = k
        self.loop = loop
        self.settle = settle
        self.given_up = False

    def cancel(self) -> None:
        """Nobody waits any more: do not search if that has not begun, and do not call back."""
        self.given_up = True


class AsyncRetriever:
    """Searches one `Retriever` for many callers. A request's result does not depend on the requests it is merged with.

    A cancelled request is dropped if it has not begun. If a merged search fails in a way that one bad query can cause, its
    halves are searched again, and so on, so that only the bad one fails; a server that fails throughout is soon left alone.
    """

    def __init__(
        self, retriever: Retriever, max_batch: int = 256, on_batch: Callable[[int], None] = lambda queries: None
    ) -> None:
        """Args:
        retriever: is only ever called from one thread.
        max_batch: most queries merged into one search; a single request may hold more.
        on_batch: told in that thread how many queries go together, before they are searched.
        """
        self._retriever = retriever
        self._max_batch = max_batch
        self._on_batch = on_batch
        self._waiting: deque[HandedIn] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._waking: asyncio.AbstractEventLoop | None = None
        self._unanswered: set[asyncio.Future[list[list[Hit]]]] = set()
        # A daemon: an interrupted program does not wait for a slow server's reply.
        threading.Thread(target=self._work, name="retrieval", daemon=True).start()

    @property
    def identity(self) -> str:
        """The identity of the retriever behind it."""
        return self._retriever.identity

    @property
    def identity_known(self) -> bool:
        """Whether that identity is the retriever's own word: a server that has not answered yet has none."""
        return bool(getattr(self._retriever, "identity_known", True))

    async def search(self, query: str, k: int) -> list[Hit]:
        """At most `k` hits for one query. Raises ServiceFailure if the retriever could not be asked."""
        return (await self.search_many([query], k))[0]

    async def search_many(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits for each query, searched as one request.

        Raises:
            ServiceFailure: the retriever could not be asked. Any other exception out of the retriever becomes one.
        """
        return await self.submit(queries, k)

    def submit(self, queries: Sequence[str], k: int) -> asyncio.Future[list[list[Hit]]]:
        """Hand queries in; the future, of the running loop, gives what `search_many` gives. Cancelling it gives them up."""
        answer: asyncio.Future[list[list[Hit]]] = asyncio.get_running_loop().create_future()
        handed_in = self.hand_in(queries, k, partial(_settle_future, answer))
        self._unanswered.add(answer)

        def forget(answer: asyncio.Future[list[list[Hit]]]) -> None:
            self._unanswered.discard(answer)
            if answer.cancelled():
                handed_in.cancel()

        answer.add_done_callback(forget)
        return answer

    def hand_in(self, queries: Sequence[str], k: int, settle: Callable[[Answer], object]) -> HandedIn:
        """Hand queries in without a future, which costs time; `close` does not wait for them.

        Args:
            queries: what is searched for.
            k: most hits for each, at least 1.
            settle: called in the running loop with the answer or the failure. Must not raise.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        loop = asyncio.get_running_loop()
        handed_in = HandedIn(list(queries), k, loop, settle)
        with self._changed:
            if self._closed:
                raise RuntimeError("the retriever is closed")
            self._waiting.append(handed_in)
            if self._waking is not loop:
                self._waking = loop
                loop.call_soon(self._wake)
        return handed_in

    async def close(self) -> None:
        """Answer what is waiting, then stop. May be called twice.

        A search whose callers have all given up is not waited for.
        """
        with self._changed:
            self._closed = True
            self._changed.notify()
        if unanswered := [answer for answer in self._unanswered if not answer.done()]:
            await asyncio.wait(unanswered)
        close = getattr(self._retriever, "close", None)
        if close is not None:
            close()

    def _wake(self) -> None:
        """Let the thread begin, once all that this turn of the event loop brings has been handed in."""
        with self._changed:
            self._waking = None
            self._changed.notify()

    def _work(self) -> None:
        while batch := self._next_batch():
            self._on_batch(sum(len(request.queries) for request in batch))
            _deliver(batch, self._search_batch(batch))

    def _next_batch(self) -> list[HandedIn]:
        """Wait for requests and take those that go together: equal k, at most `max_batch` queries. Empty when closed."""
        with self._changed:
            while True:
                self._waiting = deque(request for request in self._waiting if not request.given_up)
                if self._waiting:
                    break
                if self._closed:
                    return []
                self._changed.wait()
            k, room = self._waiting[0].k, self._max_batch
            batch: list[HandedIn] = []
            left: deque[HandedIn] = deque()
            for request in self._waiting:
                if request.k == k and (not batch or len(request.queries) <= room):
                    batch.append(request)
                    room -= len(request.queries)
                else:
                    left.append(request)
            self._waiting = left
            return batch

    def _search_batch(self, batch: Sequence[HandedIn], budget: list[int] | None = None) -> list[Answer]:
        """One answer per request. Queries that stand in the batch several times are searched once.

        Args:
            budget: further searches that may be spent on finding the query that spoils the batch; the rest fails with it.
        """
        budget = [_SEARCHES_FOR_BLAME] if budget is None else budget
        queries = list(dict.fromkeys(query for request in batch for query in request.queries))
        try:
            hits = dict(zip(queries, self._retriever.search(queries, batch[0].k), strict=True))
        except UserError as error:
            return [error] * len(batch)
        except Exception as error:
            failure = _as_failure(error)
            if len(batch) > 1 and failure.failure.kind in _BLAMED_ON_ONE_QUERY and budget[0] >= 2:
                budget[0] -= 2
                middle = len(batch) // 2
                return [*self._search_batch(batch[:middle], budget), *self._search_batch(batch[middle:], budget)]
            return [failure] * len(batch)
        return [[list(hits[query]) for query in request.queries] for request in batch]


def _as_failure(error: Exception) -> ServiceFailure:
    """Any exception out of a retriever as the typed outcome that callers record."""
    if isinstance(error, ServiceFailure):
        return error
    failure = ServiceFailure(Failure("retriever", FailureKind.SERVER_ERROR, f"{type(error).__name__}: {error}"))
    failure.__cause__ = error
    return failure


def _deliver(batch: Sequence[HandedIn], answers: Sequence[Answer]) -> None:
    """Hand answers over to the event loops that wait for them, if they still do; each loop is woken once."""
    answered = list(zip(batch, answers, strict=True))
    for loop in {request.loop for request in batch}:
        try:
            loop.call_soon_threadsafe(_settle, [pair for pair in answered if pair[0].loop is loop])
        except RuntimeError:
            # The loop was closed while the search ran; nobody waits any more.
            continue


def _settle(answered: Sequence[tuple[HandedIn, Answer]]) -> None:
    for request, answer in answered:
        if not request.given_up:
            request.settle(answer)


def _settle_future(future: asyncio.Future[list[list[Hit]]], answer: Answer) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        # Each waiter gets an exception object of its own: raising one in several tasks would mix their tracebacks.
        future.set_exception(_copy_of(answer))
    else:
        future.set_result(answer)


def _copy_of(error: ServiceFailure | UserError) -> Exception:
    copy = ServiceFailure(error.failure) if isinstance(error, ServiceFailure) else UserError(*error.lines)
    copy.__cause__ = error.__cause__
    return copy
