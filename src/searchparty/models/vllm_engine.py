"""vLLM in this process as an engine: a thread of its own steps it with the requests of all running episodes.

Knows asyncio on one side and `VllmBatch` on the other. What is promised about equal results: a request's random numbers depend
on its seed and candidate number alone. vLLM's sums are ordered by the shape of the batch, so that logits may differ in the last
bits of their precision between batches, and in bfloat16 a token may then differ too; from there on the completion is another.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from searchparty.errors import Failure, FailureKind
from searchparty.models.batch import Job
from searchparty.models.threaded_engine import ThreadedEngine
from searchparty.models.types import Tokenizer
from searchparty.models.vllm_batch import NamedTensors, Scoring, SteppedEngine, VllmBatch


@dataclass(eq=False)
class Refresh:
    """New weights on their way."""

    named_tensors: NamedTensors
    future: Future[None]


class VllmEngine(ThreadedEngine["Scoring | Refresh"]):
    """See `ThreadedEngine`."""

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
        super().__init__("vllm-engine", context_tokens, vocabulary)
        self._batch = VllmBatch(llm, make_params, put_weights, tokenizer, end_ids)
        self._free = free

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
        """See `ThreadedEngine.close`; the model is freed as well."""
        await super().close()
        if self._free is not None:
            self._free()
            self._free = None

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
