"""A stand-in for `vllm.LLMEngine` and `vllm.SamplingParams`: what a real one returns, from a model that is a formula.

Like the real one it gives every running request one token a step, shares growing lists of ids with its caller, ends a request
at a stop token or at its limit, and knows nothing of stop strings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass
class Params:
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    stop_token_ids: Sequence[int] = ()
    ignore_eos: bool = False
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    flat_logprobs: bool = False
    detokenize: bool = True

    def __post_init__(self) -> None:
        if self.temperature > 2:
            raise ValueError("temperature must be in [0, 2]")


@dataclass
class Running:
    prompt: Sequence[int]
    params: Params
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class Weights:
    """The model: `say` is the text that every completion takes its bytes from, in turn; without one they are random by seed."""

    def __init__(self) -> None:
        self.version = 0.0
        self.say = b""

    def token(self, request: Running) -> int:
        place = len(request.ids)
        if self.say:
            return self.say[place % len(self.say)]
        return random.Random(f"{request.params.seed} {place} {self.version}").randrange(32, 127)

    def logprob(self, place: int) -> float:
        return -self.version - place / 16

    def load_weights(self, named_tensors: Any) -> None:
        for name, tensor in named_tensors:
            if name != "version":
                raise KeyError(name)
            self.version = float(tensor)


class StubLLM:
    def __init__(self, say: bytes = b"") -> None:
        self.weights = Weights()
        self.weights.say = say
        self.running: dict[str, Running] = {}
        self.asked: list[Params] = []
        self.aborted: list[str] = []
        self.most_running = 0
        self.cache_is_stale = False
        self.before_step: Callable[[], None] = lambda: None

    def add_request(self, request_id: str, prompt: dict[str, Any], params: Params) -> None:
        assert request_id not in self.running
        self.running[request_id] = Running(prompt["prompt_token_ids"], params)
        self.asked.append(params)

    def abort_request(self, request_ids: list[str]) -> None:
        for name in request_ids:
            self.running.pop(name, None)
            self.aborted.append(name)

    def step(self) -> list[Any]:
        self.before_step()
        self.most_running = max(self.most_running, len(self.running))
        return [self._advance(name) for name in list(self.running)]

    def put_weights(self, named_tensors: Any) -> None:
        assert not self.running
        self.weights.load_weights(named_tensors)
        self.cache_is_stale = True

    def reset_prefix_cache(self) -> bool:
        self.cache_is_stale = False
        return True

    def _advance(self, name: str) -> Any:
        assert not self.cache_is_stale
        request = self.running[name]
        request.ids.append(self.weights.token(request))
        request.logprobs.append(self.weights.logprob(len(request.ids)))
        reason = None
        if request.ids[-1] in request.params.stop_token_ids:
            reason = "stop"
        elif len(request.ids) == request.params.max_tokens:
            reason = "length"
        if reason:
            del self.running[name]
        output = SimpleNamespace(
            token_ids=request.ids, logprobs=SimpleNamespace(logprobs=request.logprobs), finish_reason=reason, text=""
        )
        scores = None
        if request.params.prompt_logprobs is not None:
            scores = SimpleNamespace(logprobs=[self.weights.logprob(place) for place in range(1, len(request.prompt))])
        return SimpleNamespace(
            request_id=name, outputs=[output], finished=reason is not None, num_cached_tokens=16, prompt_logprobs=scores
        )
