"""The in-process engine: a transformers model in a thread of its own that batches the requests of all running episodes.

Knows asyncio on one side and `Batch` on the other. What is promised about equal results: a request's tokens depend on its
prompt, sampling and seed, not on its batch companions or on what the prefix cache holds. The logits themselves may differ in
the last bits between batches of different shape, as floating-point sums are ordered by the shape; log-probabilities then differ
by that much, and a token could differ only where two of its perturbed scores are equal to within it (see `drawing`): never seen
in float32, possible in bfloat16, whose last bit is coarse.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress

from searchparty.errors import Failure, FailureKind
from searchparty.models.batch import Batch, BatchLimits, Job, as_failure
from searchparty.models.slots import CausalModel, require_full_attention
from searchparty.models.threaded_engine import ThreadedEngine
from searchparty.models.types import Tokenizer

ScoreJob = tuple[list[list[int]], "Future[list[list[float] | Failure]]"]
Forget = Future[None]
"""Asks for the prefix cache to be cleared; done when it is."""


class TransformersEngine(ThreadedEngine["ScoreJob | Forget"]):
    """See `ThreadedEngine`."""

    def __init__(
        self,
        model: CausalModel,
        tokenizer: Tokenizer,
        end_ids: Sequence[int],
        *,
        context_tokens: int,
        limits: BatchLimits | None = None,
    ) -> None:
        """`end_ids` end a completion; `context_tokens` bounds prompt and completion together."""
        require_full_attention(model.config)
        super().__init__("transformers-engine", context_tokens, model.config.vocab_size)
        self._batch = Batch(model, tokenizer.decode, tuple(end_ids), limits or BatchLimits())
        self.settle: Callable[[], None] | None = None
        """Called by the engine's thread before a first step and after every step that ended a request; returns when nobody is
        about to send another request without a reply to one of those under way. With it, what is in a batch does not depend on
        how fast the threads are, so that log-probabilities are equal to the last bit from run to run."""

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float] | Failure]:
        """See `Engine.score`. Runs between two decode steps of what is being generated."""
        replies: list[list[float] | Failure] = [self._unfit(sequence, self._context_tokens) or [] for sequence in sequences]
        places = [place for place, reply in enumerate(replies) if not isinstance(reply, Failure)]
        future: Future[list[list[float] | Failure]] = Future()
        self._send(([list(sequences[place]) for place in places], future))
        scored: list[list[float] | Failure] = await asyncio.wrap_future(future)
        for place, scores in zip(places, scored, strict=True):
            replies[place] = scores
        return replies

    async def weights_changed(self) -> None:
        """Forget keys and values of the weights as they were. To be called while no request is under way."""
        if self._thread is not None:
            done: Forget = Future()
            self._send(done)
            await asyncio.wrap_future(done)

    def _work(self) -> None:
        batch = self._batch
        arrived: list[Job] = []
        settled = False
        while True:
            for item in self._received(wait=not (batch.busy or arrived)):
                if item is None:
                    for job in arrived:
                        batch.submit(job)
                    batch.fail_all(Failure("model", FailureKind.UNREACHABLE, "the engine was closed"))
                    return
                if isinstance(item, Job):
                    arrived.append(item)
                elif isinstance(item, Future):
                    batch.forget()
                    item.set_result(None)
                else:
                    _score(batch, *item)
            if not (batch.busy or arrived):
                settled = False
                continue
            if self.settle is not None and not settled:
                self.settle()
                settled = True
                continue
            for job in sorted(arrived, key=lambda job: job.request.seed) if self.settle is not None else arrived:
                batch.submit(job)
            arrived = []
            under_way = batch.unfinished
            try:
                batch.step()
            except Exception as error:
                batch.fail_all(as_failure(error))
            settled = batch.unfinished == under_way

    def _received(self, wait: bool) -> list[Job | ScoreJob | Forget | None]:
        """Everything that was sent since the last time."""
        items = [self._inbox.get()] if wait else []
        with suppress(queue.Empty):
            while True:
                items.append(self._inbox.get(block=False))
        return items


def _score(batch: Batch, sequences: list[list[int]], future: Future[list[list[float] | Failure]]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    replies: list[list[float] | Failure]
    try:
        replies = list(batch.score(sequences))
    except Exception as error:
        replies = [as_failure(error)] * len(sequences)
    future.set_result(replies)
