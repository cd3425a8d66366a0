"""Continuous batching: requests join the running batch between two decode steps and leave it when they are done.

Runs in one thread. Knows token ids, limits and stop strings; does not know where requests come from (`transformers_engine`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import torch

from searchparty.errors import Failure, FailureKind
from searchparty.models.drawing import draw, stream
from searchparty.models.passes import split_into_passes
from searchparty.models.prefix_cache import PrefixCache
from searchparty.models.slots import CausalModel, Slots
from searchparty.models.stop_watch import StopWatch
from searchparty.models.types import Completion, FinishReason, Generated, GenerateRequest

SCORE_LOGITS = 2**26
"""Most logits held at once while scoring: a quarter of a gibibyte in float32."""
CPU_FILLING = 64
"""Most filling in one pass over prompts on a CPU, in tokens: about what a further pass costs with the smallest of models. On
other devices a pass costs as much as many more tokens, and all prompts go into one."""


@dataclass(eq=False)
class Job:
    """One request on its way. `limit` is the most tokens that a candidate may have, context window considered."""

    request: GenerateRequest
    prompt_ids: list[int]
    limit: int
    future: Future[Generated | Failure]
    cached_tokens: int = 0
    finished: dict[int, Completion] = field(default_factory=dict)

    def deliver(self, reply: Generated | Failure) -> None:
        """Hand over the reply; if nobody waits for it any more it is dropped."""
        with suppress(InvalidStateError):
            self.future.set_result(reply)


@dataclass(eq=False)
class Row:
    """One candidate in the batch. Its last sampled token is not yet in its slot."""

    job: Job
    candidate: int
    stream: int
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class BatchLimits:
    """Bounds on memory. A single request that exceeds one of them still runs, alone."""

    batch_tokens: int = 32768
    """Rows times the longest row's length, prompt and completion."""
    prefill_tokens: int = 2048
    """Tokens in one forward pass over prompts; longer prompts are read in several passes."""
    cache_tokens: int = 32768
    """Tokens whose keys and values the prefix cache keeps."""


class Batch:
    """All rows in flight. `rows[i]` is in slot i. `submit`, then `step` until it is not `busy`."""

    def __init__(
        self, model: CausalModel, decode: Callable[[Sequence[int]], str], end_ids: Sequence[int], limits: BatchLimits
    ) -> None:
        self._slots = Slots(model, limits.batch_tokens)
        self._score_tokens = max(64, min(limits.prefill_tokens, SCORE_LOGITS // model.config.vocab_size))
        self._most_filling = CPU_FILLING if model.device.type == "cpu" else limits.prefill_tokens
        self._decode = decode
        self._stop_watch = StopWatch(decode)
        self._end_ids = frozenset(end_ids)
        self._limits = limits
        self._cache = PrefixCache(limits.cache_tokens)
        self._waiting: deque[Job] = deque()
        self._rows: list[Row] = []

    @property
    def busy(self) -> bool:
        """Whether any request is unfinished."""
        return bool(self._waiting or self._rows)

    @property
    def unfinished(self) -> int:
        """How many requests are waiting or under way."""
        return len({*self._waiting, *(row.job for row in self._rows)})

    def forget(self) -> None:
        """Begin anew, as if nothing had been computed before: the weights have changed. Only while nothing is unfinished."""
        self._cache.clear()
        self._slots.clear()

    def submit(self, job: Job) -> None:
        """Queue a job behind those that wait."""
        self._waiting.append(job)

    def step(self) -> None:
        """Let waiting requests join and sample one token for every row. A failing forward pass fails the jobs in it alone."""
        self._drop_cancelled()
        if joining := self._admit():
            try:
                self._prefill(joining)
            except Exception as error:
                self._fail(joining, error)
            return
        if self._rows:
            try:
                logits = self._slots.forward(0, [row.ids[-1:] for row in self._rows], 1)
                self._sample(self._rows, logits[:, -1])
                self._finish_rows()
            except Exception as error:
                self._fail([row.job for row in self._rows], error)

    def fail_all(self, failure: Failure) -> None:
        """End every unfinished request with `failure`."""
        for job in {*self._waiting, *(row.job for row in self._rows)}:
            job.deliver(failure)
        self._waiting.clear()
        self._rows.clear()
        self._slots.lengths.clear()

    def _drop_cancelled(self) -> None:
        self._waiting = deque(job for job in self._waiting if not job.future.cancelled())
        for place in reversed(range(len(self._rows))):
            if self._rows[place].job.future.cancelled():
                self._remove(place)

    def _admit(self) -> list[Job]:
        """Take those waiting jobs that fit, in order, and make room for them.

        Of several prompts that go on with the same uncached block only the first is taken: the others find it in the cache next
        time. This is what makes hundreds of episodes that start with one system prompt cheap.
        """
        joining: list[Job] = []
        coming = set()
        rows, longest, new_tokens = len(self._rows), self._longest(), 0
        for job in list(self._waiting):
            missing = self._cache.missing(job.prompt_ids)
            if missing is not None and missing in coming:
                continue
            job.cached_tokens = self._cache.matched_tokens(job.prompt_ids)
            new_rows, new_longest = rows + job.request.n, max(longest, len(job.prompt_ids) + job.limit)
            new_tokens += len(job.prompt_ids) - job.cached_tokens
            fits_memory = new_rows * new_longest <= self._limits.batch_tokens
            fits_pass = new_tokens <= self._limits.prefill_tokens
            if (rows and not fits_memory) or (joining and not fits_pass):
                break
            rows, longest = new_rows, new_longest
            joining.append(job)
            coming.add(missing)
            self._waiting.remove(job)
        self._slots.reserve(rows, longest)
        return joining

    def _longest(self) -> int:
        return max((len(row.job.prompt_ids) + row.job.limit for row in self._rows), default=0)

    def _prefill(self, jobs: Sequence[Job]) -> None:
        """Read the prompts, one row each, copy that row for further candidates, and sample everyone's first token."""
        first = len(self._rows)
        jobs = sorted(jobs, key=lambda job: len(job.prompt_ids) - job.cached_tokens)
        for job in jobs:
            self._slots.add_row(self._cache.match(job.prompt_ids))
        logits = self._read_prompts(first, [job.prompt_ids[job.cached_tokens :] for job in jobs])
        rows, source = [], []
        for place, job in enumerate(jobs):
            self._cache.insert(job.prompt_ids, partial(self._slots.read, first + place))
            rows.append(Row(job, 0, stream(job.request.seed, 0)))
            source.append(place)
        for place, job in enumerate(jobs):
            for candidate in range(1, job.request.n):
                self._slots.copy_row(first + place)
                rows.append(Row(job, candidate, stream(job.request.seed, candidate)))
                source.append(place)
        self._rows += rows
        self._sample(rows, logits[source])
        self._finish_rows()

    def _read_prompts(self, first: int, new_ids: Sequence[list[int]]) -> torch.Tensor:
        """Append ids to consecutive rows from `first` on, shorter ones before longer ones, and return the logits at their ends.

        Rows of like length are read in one pass, a single long one in several.

        Returns:
            [rows, vocabulary]
        """
        ends, most = [], self._limits.prefill_tokens
        for run in split_into_passes([len(ids) for ids in new_ids], self._most_filling, most):
            for start in range(0, len(new_ids[run[-1]]), most):  # more than once for a single long one only
                logits = self._slots.forward(first + run[0], [new_ids[place][start : start + most] for place in run], 1)
            ends.append(logits[:, -1])
        return torch.cat(ends)

    def _sample(self, rows: Sequence[Row], logits: torch.Tensor) -> None:
        streams, positions = [row.stream for row in rows], [len(row.ids) for row in rows]
        ids, logprobs = draw(logits, streams, positions, [row.job.request.sampling for row in rows])
        for row, token, logprob in zip(rows, ids, logprobs, strict=True):
            row.ids.append(token)
            row.logprobs.append(logprob)

    def _finish_rows(self) -> None:
        for place in reversed(range(len(self._rows))):
            row = self._rows[place]
            reason = self._ending(row)
            if reason is None:
                continue
            if row.job.request.n == 1:  # an agent's next prompt goes on from here; candidates are alternatives
                self._cache.insert([*row.job.prompt_ids, *row.ids[:-1]], partial(self._slots.read, place))
            self._remove(place)
            self._complete(row, reason)

    def _ending(self, row: Row) -> FinishReason | None:
        if row.ids[-1] in self._end_ids:
            return FinishReason.END
        if self._stop_watch.completed(row.ids, row.job.request.stop):
            return FinishReason.STOP
        return FinishReason.LENGTH if len(row.ids) >= row.job.limit else None

    def _complete(self, row: Row, reason: FinishReason) -> None:
        job = row.job
        text = self._decode(row.ids[:-1] if reason is FinishReason.END else row.ids)
        job.finished[row.candidate] = Completion(text, row.ids, row.logprobs, reason)
        if len(job.finished) == job.request.n:
            candidates = [job.finished[candidate] for candidate in range(job.request.n)]
            job.deliver(Generated(candidates, prompt_tokens=len(job.prompt_ids), cached_tokens=job.cached_tokens))

    def _remove(self, place: int) -> None:
        """Remove a row as its slot is removed: the last one takes its place."""
        self._slots.remove_row(place)
        last = self._rows.pop()
        if place < len(self._rows):
            self._rows[place] = last

    def _fail(self, jobs: Sequence[Job], error: Exception) -> None:
        """Fail `jobs` and free everything that they hold."""
        for place in reversed(range(len(self._rows))):
            if self._rows[place].job in jobs:
                self._remove(place)
        del self._slots.lengths[len(self._rows) :]
        failure = as_failure(error)
        for job in jobs:
            job.deliver(failure)

    def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probabilities at temperature 1 of every token given those before it; 0.0 for the first of each sequence."""
        results: list[list[float]] = [[0.0][: len(sequence)] for sequence in sequences]
        order = sorted(
            (place for place, sequence in enumerate(sequences) if len(sequence) > 1), key=lambda p: len(sequences[p])
        )
        group: list[int] = []
        for place in order:
            if group and (len(group) + 1) * len(sequences[place]) > self._score_tokens:
                self._score_group(sequences, group, results)
                group = []
            group.append(place)
        if group:
            self._score_group(sequences, group, results)
        return results

    def _score_group(self, sequences: Sequence[Sequence[int]], group: Sequence[int], results: list[list[float]]) -> None:
        """Score a few sequences of like length in one pass, or a single long one in several."""
        first, longest = len(self._rows), max(len(sequences[place]) for place in group)
        self._slots.reserve(first + len(group), max(longest, self._longest()))
        try:
            for _ in group:
                self._slots.add_row()
            width = longest if len(group) > 1 else self._score_tokens
            for start in range(0, longest - 1, width):
                given = [list(sequences[place][start : min(start + width, len(sequences[place]) - 1)]) for place in group]
                logits = self._slots.forward(first, given, max(map(len, given)))
                for row, place in enumerate(group):
                    targets = sequences[place][start + 1 : start + 1 + len(given[row])]
                    results[place] += token_logprobs(logits[row, -len(targets) :], targets)
        finally:
            del self._slots.lengths[first:]


def token_logprobs(logits_TV: torch.Tensor, targets_T: Sequence[int]) -> list[float]:
    """Log-probability of each target under its row of logits."""
    logits_TV = logits_TV.float()
    target_T = torch.tensor(list(targets_T), device=logits_TV.device)
    chosen_T = logits_TV.gather(1, target_T[:, None])[:, 0]
    logprobs: list[float] = (chosen_T - logits_TV.logsumexp(dim=-1)).tolist()
    return logprobs


def as_failure(error: Exception) -> Failure:
    """An exception inside the engine as a recorded failure, in one line."""
    message = " ".join(str(error).split())[:300]
    return Failure("model", FailureKind.SERVER_ERROR, f"{type(error).__name__}: {message}")
