"""What the requests of running episodes are to vLLM: one vLLM request for each candidate and for each sequence to score.

Runs in one thread, which is the only one that touches vLLM. Knows token ids, stop strings and vLLM's synchronous engine (the
part of it in `SteppedEngine`); does not know where requests come from (`vllm_engine`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from searchparty.errors import Failure, FailureKind
from searchparty.models.batch import Job, as_failure
from searchparty.models.drawing import stream
from searchparty.models.stop_watch import StopWatch
from searchparty.models.types import Completion, FinishReason, Generated, Tokenizer
from searchparty.models.vllm_turns import turn

SEED_BITS = 2**63 - 1
"""A seed of vLLM is not negative."""

NamedTensors = Iterable[tuple[str, torch.Tensor]]


class SteppedEngine(Protocol):
    """The part of `vllm.LLMEngine` that is used here."""

    def add_request(self, request_id: str, prompt: Any, params: Any) -> Any: ...
    def abort_request(self, request_ids: list[str]) -> None: ...
    def step(self) -> Sequence[Any]: ...
    def reset_prefix_cache(self) -> bool: ...


@dataclass(eq=False)
class Scoring:
    """Sequences to score on their way; those that are wrong or too short have their reply already."""

    sequences: Sequence[Sequence[int]]
    replies: list[list[float] | Failure | None]
    future: Future[list[list[float] | Failure]]

    def put(self, place: int, reply: list[float] | Failure) -> None:
        """Record one reply and, with the last one, hand all over."""
        self.replies[place] = reply
        self.deliver()

    def deliver(self) -> None:
        """Hand over the replies if all are there; if nobody waits any more they are dropped."""
        replies = [reply for reply in self.replies if reply is not None]
        if len(replies) == len(self.replies):
            with suppress(InvalidStateError):
                self.future.set_result(replies)


@dataclass(eq=False)
class Row:
    """One candidate that vLLM is sampling."""

    job: Job
    candidate: int
    seen: int = 0
    """Tokens that were searched for stop strings."""


class VllmBatch:
    """Everything that vLLM has in hand. `submit` or `score`, then `step` until it is not `busy`."""

    def __init__(
        self,
        llm: SteppedEngine,
        make_params: Callable[..., Any],
        put_weights: Callable[[NamedTensors], None],
        tokenizer: Tokenizer,
        end_ids: Sequence[int],
    ) -> None:
        """See `VllmEngine`."""
        self._llm = llm
        self._put_weights = put_weights
        self._make_params = make_params
        self._decode = tokenizer.decode
        self._end_ids = list(end_ids)
        self._watch = StopWatch(tokenizer.decode)
        self._rows: dict[str, Row] = {}
        self._scorings: dict[str, tuple[Scoring, int]] = {}
        self._names = map(str, itertools.count())

    @property
    def busy(self) -> bool:
        """Whether any request is unfinished."""
        return bool(self._rows or self._scorings)

    def submit(self, job: Job) -> None:
        """Give vLLM a request, each candidate apart: the prefix cache reads their prompt once."""
        for candidate in range(job.request.n):
            name = next(self._names)
            try:
                self._llm.add_request(name, {"prompt_token_ids": job.prompt_ids}, self._params(job, candidate))
            except Exception as error:
                self._fail(job, _refusal(error))
                return
            self._rows[name] = Row(job, candidate)

    def score(self, scoring: Scoring) -> None:
        """Give vLLM the sequences that have no reply yet."""
        for place, reply in enumerate(scoring.replies):
            if reply is not None:
                continue
            name = next(self._names)
            params = self._make_params(max_tokens=1, temperature=0.0, prompt_logprobs=0, detokenize=False, flat_logprobs=True)
            try:
                self._llm.add_request(name, {"prompt_token_ids": list(scoring.sequences[place])}, params)
            except Exception as error:
                scoring.put(place, _refusal(error))
                continue
            self._scorings[name] = scoring, place
        scoring.deliver()

    def step(self) -> None:
        """Let vLLM make one step and take what is finished. If it breaks, everything in hand fails."""
        try:
            self._drop_cancelled()
            with turn():
                outputs = self._llm.step()
            stopped = [output.request_id for output in outputs if self._take(output)]
            if stopped:
                self._llm.abort_request(stopped)
        except Exception as error:
            self.fail_all(as_failure(error))

    def fail_all(self, failure: Failure) -> None:
        """End every unfinished request with `failure`."""
        names = [*self._rows, *self._scorings]
        for row in self._rows.values():
            row.job.deliver(failure)
        for scoring, place in self._scorings.values():
            scoring.put(place, failure)
        self._rows.clear()
        self._scorings.clear()
        with suppress(Exception):  # an engine that is broken may not be able to forget either
            self._llm.abort_request(names)

    def load(self, named_tensors: NamedTensors) -> None:
        """Finish what is in hand, put new weights into the model, and forget what was computed with the old ones."""
        while self.busy:
            self.step()
        with turn(), torch.no_grad():
            self._llm.step()  # a step that was under way for requests since aborted still uses the old weights
            self._put_weights((name, tensor.detach()) for name, tensor in named_tensors)
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # afterwards the caller may change the tensors
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM did not reset its prefix cache: it would go on from keys and values of the old weights")

    def _params(self, job: Job, candidate: int) -> Any:
        sampling = job.request.sampling
        # Greedy requests must not be truncated: their log-probabilities are those of temperature 1.
        truncation = {"top_p": sampling.top_p, "top_k": sampling.top_k} if sampling.temperature else {}
        return self._make_params(
            temperature=sampling.temperature,
            **truncation,
            seed=stream(job.request.seed, candidate) & SEED_BITS,
            max_tokens=job.limit,
            stop_token_ids=self._end_ids,
            ignore_eos=True,  # end ids are those of the chat format, and no others
            logprobs=0,
            flat_logprobs=True,
            detokenize=False,
        )

    def _drop_cancelled(self) -> None:
        names = [name for name, row in self._rows.items() if row.job.future.cancelled()]
        names += [name for name, (scoring, _) in self._scorings.items() if scoring.future.cancelled()]
        self._forget(names)

    def _forget(self, names: list[str]) -> None:
        for name in names:
            self._rows.pop(name, None)
            self._scorings.pop(name, None)
        if names:
            self._llm.abort_request(names)

    def _fail(self, job: Job, failure: Failure) -> None:
        self._forget([name for name, row in self._rows.items() if row.job is job])
        job.deliver(failure)

    def _take(self, output: Any) -> bool:
        """Take in an output of a step; True if vLLM must be told that its request is over."""
        name = output.request_id
        if name in self._scorings:
            if output.finished:
                scoring, place = self._scorings.pop(name)
                scoring.put(place, _scores(output, scoring.sequences[place]))
            return False
        if name not in self._rows:
            return False
        row, sampled = self._rows[name], output.outputs[0]
        length, reason = self._ending(row, sampled)
        if reason is None:
            return False
        del self._rows[name]
        if isinstance(reason, Failure):
            self._fail(row.job, reason)
        else:
            self._complete(row, list(sampled.token_ids[:length]), sampled.logprobs.logprobs[:length], reason, output)
        return sampled.finish_reason is None

    def _ending(self, row: Row, sampled: Any) -> tuple[int, FinishReason | Failure | None]:
        """How many of the tokens belong to the completion, and why it is over; None if it goes on."""
        ids, stops = sampled.token_ids, row.job.request.stop
        ended = sampled.finish_reason == "stop"
        for length in range(row.seen + 1, len(ids) + 1 - ended) if stops else ():
            if self._watch.completed(ids[:length], stops):
                return length, FinishReason.STOP
        row.seen = len(ids)
        if ended:
            return len(ids), FinishReason.END
        if sampled.finish_reason == "length":
            return len(ids), FinishReason.LENGTH
        if sampled.finish_reason is not None:
            detail = f"vLLM ended the request with {sampled.finish_reason!r}"
            return len(ids), Failure("model", FailureKind.SERVER_ERROR, detail)
        return len(ids), None

    def _complete(self, row: Row, ids: list[int], logprobs: list[float], reason: FinishReason, output: Any) -> None:
        job = row.job
        if len(logprobs) != len(ids):
            detail = f"vLLM gave {len(logprobs)} log-probabilities for {len(ids)} tokens"
            self._fail(job, Failure("model", FailureKind.MALFORMED_REPLY, detail))
            return
        text = self._decode(ids[:-1] if reason is FinishReason.END else ids)
        job.finished[row.candidate] = Completion(text, ids, logprobs, reason)
        if row.candidate == 0:
            job.cached_tokens = output.num_cached_tokens or 0
        if len(job.finished) == job.request.n:
            candidates = [job.finished[candidate] for candidate in range(job.request.n)]
            job.deliver(Generated(candidates, prompt_tokens=len(job.prompt_ids), cached_tokens=job.cached_tokens))


def _scores(output: Any, sequence: Sequence[int]) -> list[float] | Failure:
    found = output.prompt_logprobs
    if found is None or len(found.logprobs) != len(sequence) - 1:
        detail = "vLLM gave not as many prompt log-probabilities as there are tokens"
        return Failure("model", FailureKind.MALFORMED_REPLY, detail)
    return [0.0, *found.logprobs]


def _refusal(error: Exception) -> Failure:
    """What vLLM does not take in it would not take in again."""
    return replace(as_failure(error), kind=FailureKind.REJECTED)
