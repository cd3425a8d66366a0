"""An engine that plays a script instead of a model: quick, deterministic and token-exact.

Knows nothing of teams; the rules of a role are in the script it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from searchparty.errors import Failure, FailureKind
from searchparty.models.bytes import ByteTokenizer
from searchparty.models.stops import first_stop_end
from searchparty.models.types import Completion, FinishReason, Generated, GenerateRequest, Tokenizer

Script = Callable[[GenerateRequest], "str | Failure | Sequence[str]"]
"""Answers one request. A string is every candidate's text; a sequence holds one text per candidate; a `Failure` fails the
request."""


class ScriptedEngine:
    """Engine whose policy is a function. Every token of a deterministic policy has log-probability 0.0.

    Limits are those of a real engine: stop strings, `max_tokens` (the end-of-turn token counts) and the context window apply.
    """

    def __init__(
        self,
        script: Script,
        tokenizer: Tokenizer | None = None,
        *,
        end_token: str = "<|im_end|>",
        context_tokens: int | None = None,
        exchanges_ids: bool = True,
    ) -> None:
        """With `exchanges_ids=False` the engine behaves like an endpoint that exchanges text only."""
        self._script = script
        self._tokenizer = tokenizer or ByteTokenizer()
        self._end_id = self._tokenizer.control_tokens[end_token]
        self._context_tokens = context_tokens
        self._exchanges_ids = exchanges_ids

    @property
    def script(self) -> Script:
        """What it speaks."""
        return self._script

    @property
    def exchanges_ids(self) -> bool:
        """See `Engine.exchanges_ids`."""
        return self._exchanges_ids

    async def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failure]:
        """See `Engine.generate`. An exception in the script fails that request alone."""
        return [self._reply(request) for request in requests]

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float] | Failure]:
        """Certainty for every token: a script has no distribution."""
        return [[0.0] * len(sequence) for sequence in sequences]

    async def close(self) -> None:
        """Nothing to free."""

    def _reply(self, request: GenerateRequest) -> Generated | Failure:
        prompt_length = None if request.prompt_ids is None else len(request.prompt_ids)
        room = request.sampling.max_tokens
        if self._context_tokens is not None and prompt_length is not None:
            room = min(room, self._context_tokens - prompt_length)
            if room < 1:
                detail = f"a prompt of {prompt_length} tokens leaves no room in a window of {self._context_tokens}"
                return Failure("model", FailureKind.CONTEXT_OVERFLOW, detail)
        try:
            reply = self._script(request)
        except Exception as error:
            return Failure("model", FailureKind.SERVER_ERROR, f"the script failed: {type(error).__name__}: {error}")
        if isinstance(reply, Failure):
            return reply
        if isinstance(reply, str):
            candidates = [self._complete(reply, request.stop, room)] * request.n
        elif len(reply) == request.n:
            candidates = [self._complete(text, request.stop, room) for text in reply]
        else:
            detail = f"the script gave {len(reply)} texts for {request.n} candidates"
            return Failure("model", FailureKind.MALFORMED_REPLY, detail)
        return Generated(candidates, prompt_tokens=prompt_length)

    def _complete(self, text: str, stop: Sequence[str], room: int) -> Completion:
        finish_reason = FinishReason.END
        cut = first_stop_end(text, stop)
        if cut is not None:
            text, finish_reason = text[:cut], FinishReason.STOP
        ids = self._tokenizer.encode(text)
        if finish_reason is FinishReason.END:
            ids.append(self._end_id)
        if len(ids) > room:
            finish_reason = FinishReason.LENGTH
            ids = ids[:room]
            text = self._tokenizer.decode(ids)
        if not self._exchanges_ids:
            return Completion(text, None, None, finish_reason)
        return Completion(text, ids, [0.0] * len(ids), finish_reason)
