"""What engines of this process have in common: a thread of their own that works on the requests of all running episodes.

Knows asyncio on one side and an inbox on the other, and what a request must be; how tokens come about is the subclass's.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from searchparty.errors import Failure, FailureKind
from searchparty.models.batch import Job
from searchparty.models.types import Generated, GenerateRequest

Item = TypeVar("Item")
"""What the inbox takes besides jobs. None ends the thread."""


class ThreadedEngine(ABC, Generic[Item]):
    """See `Engine`. What it samples with is used by the engine's thread only, from the first request until `close`."""

    def __init__(self, name: str, context_tokens: int, vocabulary: int) -> None:
        """`name` is the thread's, `context_tokens` bounds prompt and completion together, and ids are below `vocabulary`."""
        self._name = name
        self._context_tokens = context_tokens
        self._vocabulary = vocabulary
        self._inbox: queue.SimpleQueue[Job | Item | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def exchanges_ids(self) -> bool:
        """See `Engine.exchanges_ids`."""
        return True

    async def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failure]:
        """See `Engine.generate`. Cancelling the call takes its requests out of the batch before the next token."""
        futures = [self._submit(request) for request in requests]
        return list(await asyncio.gather(*(asyncio.wrap_future(future) for future in futures)))

    async def close(self) -> None:
        """End what is running with a failure and stop the thread; the step under way is waited for."""
        self._closed = True
        if self._thread is not None:
            self._inbox.put(None)
            await asyncio.to_thread(self._thread.join)
            self._thread = None

    def _submit(self, request: GenerateRequest) -> Future[Generated | Failure]:
        future: Future[Generated | Failure] = Future()
        ids = list(request.prompt_ids or ())
        failure = self._unfit(ids, self._context_tokens - 1)
        if not ids:
            failure = Failure("model", FailureKind.REJECTED, "the request has no prompt ids; this engine exchanges ids only")
        if request.n < 1 or request.sampling.max_tokens < 1:
            failure = Failure("model", FailureKind.REJECTED, "a request needs n and max_tokens of at least 1")
        if failure is not None:
            future.set_result(failure)
            return future
        limit = min(request.sampling.max_tokens, self._context_tokens - len(ids))
        self._send(Job(request, ids, limit, future))
        return future

    def _unfit(self, ids: Sequence[int], most: int) -> Failure | None:
        """Why the model cannot be given `ids`."""
        if len(ids) > most:
            detail = f"{len(ids)} tokens do not fit: the context window has {self._context_tokens}"
            return Failure("model", FailureKind.CONTEXT_OVERFLOW, detail)
        if ids and not 0 <= min(ids) <= max(ids) < self._vocabulary:
            return Failure("model", FailureKind.REJECTED, f"ids outside the vocabulary of {self._vocabulary} tokens")
        return None

    def _send(self, item: Job | Item) -> None:
        if self._closed:
            raise RuntimeError("the engine is closed")
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._inbox.put(item)

    @abstractmethod
    def _work(self) -> None:
        """The thread: takes from the inbox until there is a None."""
