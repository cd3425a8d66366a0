"""Any OpenAI-compatible server as an engine, over token ids where it offers them (vLLM) and over chat text elsewhere.

Knows which call to make and what to do with too few choices; bodies and replies are in `openai_protocol`, HTTP in `endpoint`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from searchparty.errors import Failure, FailureKind, UserError
from searchparty.models import openai_protocol as protocol
from searchparty.models.chat import ChatFormat
from searchparty.models.endpoint import Endpoint
from searchparty.models.types import Completion, Generated, GenerateRequest


@dataclass(frozen=True)
class ServerOffer:
    """What a server was found to offer."""

    model: str
    context_tokens: int | None = None
    token_ids: bool = False
    """It takes and gives token ids."""
    processed_logprobs: bool = False
    """Its log-probabilities are those after temperature, top-k and top-p (vLLM: `--logprobs-mode processed_logprobs`)."""
    known: bool = True
    """The server has told its models; if not, `model` is a guess and is asked for again."""


def find_offer(endpoint: Endpoint, model: str | None, chat: ChatFormat | None) -> ServerOffer:
    """Ask a server for its model and context length, and with a tokenizer at hand try its token route with one token.

    A server that cannot be asked is assumed to offer what the user prepared for: the run's requests then record its failures.

    Raises:
        UserError: if it serves several models, or not the one that is named.
    """
    listed = endpoint.ask_once("GET", "/models")
    served = {}
    if not isinstance(listed, Failure) and isinstance(listed.get("data"), list):
        served = {str(entry.get("id")): entry for entry in listed["data"] if isinstance(entry, dict)}
    if model is None and len(served) > 1:
        raise UserError(f"--model {endpoint.url}: the server has {', '.join(sorted(served))}; name one: {endpoint.url}#NAME")
    if model is not None and served and model not in served:
        raise UserError(f"--model {endpoint.url}#{model}: the server has no such model, only {', '.join(sorted(served))}")
    name, known = model or next(iter(served), "default"), not isinstance(listed, Failure)
    length = served.get(name, {}).get("max_model_len")
    context_tokens = length if type(length) is int and length > 0 else None
    if chat is None:
        return ServerOffer(name, context_tokens, known=known)
    # One of the first tokens the tokenizer has, drawn with top_k 1: a processed log-probability of it is exactly 0.
    body = {
        "model": name, "prompt": chat.begin_action(), "max_tokens": 1, "temperature": 1.0, "top_k": 1, "logprobs": 0,
        "return_token_ids": True,
    }  # fmt: skip
    tried = endpoint.ask_once("POST", "/completions", body)
    if isinstance(tried, Failure):
        return ServerOffer(name, context_tokens, tried.kind is not FailureKind.REJECTED, known=known)
    choice = (tried.get("choices") or [{}])[0]
    if not isinstance(choice.get("token_ids"), list) or choice.get("prompt_token_ids") != body["prompt"]:
        return ServerOffer(name, context_tokens, known=known)
    return ServerOffer(name, context_tokens, True, (choice.get("logprobs") or {}).get("token_logprobs") == [0.0])


class OpenAIEngine:
    """See `Engine`. With a chat format it exchanges token ids, without one chat text.

    A server that ignores `n` is asked again, with other seeds, until there are enough candidates. At temperature 0 all
    candidates are the same: one is sampled (vLLM refuses to be asked for more) and given `n` times.
    """

    def __init__(self, endpoint: Endpoint, offer: ServerOffer, chat: ChatFormat | None, model_name: str | None = None) -> None:
        """`model_name` is what the user asked for, if anything: an offer that is not known is asked for again with it."""
        self._endpoint = endpoint
        self._offer = offer
        self._chat = chat
        self._model_name = model_name
        self._asking = asyncio.Lock()

    @property
    def exchanges_ids(self) -> bool:
        """See `Engine.exchanges_ids`."""
        return self._chat is not None

    async def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failure]:
        """See `Engine.generate`."""
        return list(await asyncio.gather(*(self._generate(request) for request in requests)))

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float] | Failure]:
        """See `Engine.score`. Needs the token route of a server that gives prompt log-probabilities.

        Such a server samples at least one token after a prompt, so a sequence must leave one free place in the context window.
        """
        if self._chat is None:
            raise UserError(f"--model {self._endpoint.url}: a chat server cannot score tokens; serve the model with vLLM")
        return list(await asyncio.gather(*(self._score(sequence) for sequence in sequences)))

    async def close(self) -> None:
        """See `Engine.close`."""
        await self._endpoint.close()

    async def _generate(self, request: GenerateRequest) -> Generated | Failure:
        if not self._offer.known:
            await self._ask_again()
        max_tokens = request.sampling.max_tokens
        if self._chat is not None:
            if not request.prompt_ids:
                return Failure("model", FailureKind.REJECTED, "the request has no prompt ids; this engine exchanges ids only")
            if self._offer.context_tokens is not None:
                max_tokens = min(max_tokens, self._offer.context_tokens - len(request.prompt_ids))
                if max_tokens < 1:
                    detail = f"{len(request.prompt_ids)} tokens do not fit: the context window has {self._offer.context_tokens}"
                    return Failure("model", FailureKind.CONTEXT_OVERFLOW, detail)
        candidates: list[Completion] = []
        counted: int | None = None
        sampled: int | None = 0
        copies = request.n if request.sampling.temperature == 0 else 1
        while (missing := request.n // copies - len(candidates)) > 0:
            seed = (request.seed + len(candidates)) % 2**31
            reply = await self._ask(request, max_tokens, missing, seed)
            if isinstance(reply, Failure):
                return reply
            more, counted, used = reply
            candidates += more[:missing]
            sampled = None if used is None or sampled is None else sampled + used
        total = None if sampled is None else sampled * copies
        return Generated(candidates * copies, prompt_tokens=counted, output_tokens=total)

    async def _ask_again(self) -> None:
        """Find out what the server offers, which was down when it was asked first."""
        async with self._asking:
            if not self._offer.known:
                offer = await asyncio.to_thread(find_offer, self._endpoint, self._model_name, self._chat)
                self._offer = offer if offer.known else self._offer

    async def _ask(
        self, request: GenerateRequest, max_tokens: int, n: int, seed: int
    ) -> tuple[list[Completion], int | None, int | None] | Failure:
        """Completions, prompt tokens, sampled tokens; the counts as far as the server tells them."""
        if self._chat is None:
            reply = await self._endpoint.post("/chat/completions", protocol.chat_body(self._offer.model, request, n, seed))
        else:
            body = protocol.completion_body(self._offer.model, request, max_tokens, n, seed, self._chat.end_ids)
            reply = await self._endpoint.post("/completions", body)
        if isinstance(reply, Failure):
            return reply
        try:
            if self._chat is None:
                return (
                    protocol.read_chat(reply, request),
                    protocol.usage(reply, "prompt_tokens"),
                    protocol.usage(reply, "completion_tokens"),
                )
            processed = self._offer.processed_logprobs
            completions = protocol.read_completions(
                reply, request, max_tokens, self._chat.tokenizer, self._chat.end_ids, processed
            )
            return completions, len(request.prompt_ids or ()), sum(len(completion.ids or ()) for completion in completions)
        except (ValueError, TypeError, AttributeError) as error:
            return self._endpoint.failure(FailureKind.MALFORMED_REPLY, str(error), 1)

    async def _score(self, ids: Sequence[int]) -> list[float] | Failure:
        if len(ids) < 2:
            return [0.0] * len(ids)
        window = self._offer.context_tokens
        if window is not None and len(ids) >= window:
            detail = f"{len(ids)} tokens and the one that a server must sample do not fit: the context window has {window}"
            return Failure("model", FailureKind.CONTEXT_OVERFLOW, detail)
        reply = await self._endpoint.post("/completions", protocol.score_body(self._offer.model, ids))
        if isinstance(reply, Failure):
            return reply
        try:
            return protocol.read_scores(reply, ids)
        except (ValueError, TypeError, AttributeError) as error:
            return self._endpoint.failure(FailureKind.MALFORMED_REPLY, str(error), 1)
