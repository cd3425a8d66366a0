"""vLLM in this process as an engine: a thread of its own steps it with the requests of all running episodes.

Knows asyncio on one side and `VllmBatch` on the other. What is promised about equal results: a request's random numbers depend
on its seed and candidate number alone. vLLM's sums are ordered by the shape of the batch, so that logits may differ in the last
bits of their precision between batches, and in bfloat16 a token may then differ too; from there on the completion is another.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from searchparty.errors import Failure, FailureKind
from searchparty.models.batch import Job
from searchparty.models.types import Generated, GenerateRequest, Tokenizer
from searchparty.models.vllm_batch import NamedTensors, Scoring, SteppedEngine, VllmBatch


@dataclass(eq=False)
class Refresh:
    """New weights on their way."""

    named_tensors: NamedTensors
    future: Future[None]


class VllmEngine:
    """See `Engine`. vLLM is used by the engine's thread only, from the first request until `close`."""

    def __init__(
        self,
        llm: SteppedEngine,
        make_params: Callable[..., Any],
        put_weights: Callable[[NamedTensors], None],
        tokenizer: Tokenizer,
        end_ids: Sequence[int],
        *,
        context_tokens: int,
        vocabulary: int,
        free: Callable[[], None] | None = None,
    ) -> None:
        """
        Args:
            llm: a `vllm.LLMEngine` with `logprobs_mode="processed_logprobs"`, its engine core in this process.
            make_params: `vllm.SamplingParams`.
            put_weights: writes tensors, named as in the model's checkpoint, into the model.
            end_ids: they end a completion.
            context_tokens: bounds prompt and completion together. Below vLLM's `max_model_len`: to score a sequence it samples
                one token more.
            vocabulary: ids are below it.
            free: gives back vLLM's memory; called by `close`.
        """
        self._batch = VllmBatch(llm, make_params, put_weights, tokenizer, end_ids)
        self._context_tokens = context_tokens
        self._vocabulary = vocabulary
        self._free = free
        self._inbox: queue.SimpleQueue[Job | Scoring | Refresh | None] = queue.SimpleQueue()
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

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float] | Failure]:
        """See `Engine.score`. Runs beside what is being generated, and reads nothing from the prefix cache."""
        replies = [self._unfit(sequence, self._context_tokens) or _short_scores(sequence) for sequence in sequences]
        future: Future[list[list[float] | Failure]] = Future()
        self._send(Scoring(sequences, replies, future))
        return await asyncio.wrap_future(future)

    async def refresh(self, named_tensors: NamedTensors) -> None:
        """Put new weights into the model, under the names of its checkpoint, and empty the prefix cache.

        What was sent before is finished with the old weights, what is sent afterwards begins with the new ones. The tensors may
        be changed again once this returns.
        """
        future: Future[None] = Future()
        self._send(Refresh(named_tensors, future))
        await asyncio.wrap_future(future)

    async def close(self) -> None:
        """End what is running with a failure, stop the thread and free the model; the step under way is waited for."""
        self._closed = True
        if self._thread is not None:
            self._inbox.put(None)
            await asyncio.to_thread(self._thread.join)
            self._thread = None
        if self._free is not None:
            self._free()
            self._free = None

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

    def _send(self, item: Job | Scoring | Refresh) -> None:
        if self._closed:
            raise RuntimeError("the engine is closed")
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="vllm-engine", daemon=True)
            self._thread.start()
        self._inbox.put(item)

    def _work(self) -> None:
        batch = self._batch
        while True:
            try:
                item = self._inbox.get(block=not batch.busy)
            except queue.Empty:
                batch.step()
                continue
            if item is None:
                batch.fail_all(Failure("model", FailureKind.UNREACHABLE, "the engine was closed"))
                return
            if isinstance(item, Job):
                batch.submit(item)
            elif isinstance(item, Scoring):
                batch.score(item)
            else:
                _load(batch, item)


def _load(batch: VllmBatch, refresh: Refresh) -> None:
    error: BaseException | None = None
    try:
        batch.load(refresh.named_tensors)
    except Exception as raised:
        error = raised
    with suppress(InvalidStateError):
        refresh.future.set_result(None) if error is None else refresh.future.set_exception(error)


def _short_scores(sequence: Sequence[int]) -> list[float] | None:
    """The scores of a sequence in which nothing is predicted; None for others."""
    return [0.0] * len(sequence) if len(sequence) < 2 else None
