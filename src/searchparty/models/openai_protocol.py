"""The bodies and replies of OpenAI's completion and chat calls, with vLLM's additions for token ids. No network.

A reply that is not in the agreed form raises ValueError, in words that can be recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from searchparty.models.stops import first_stop_end
from searchparty.models.types import Completion, FinishReason, GenerateRequest, Sampling, Tokenizer

Body = dict[str, Any]


def completion_body(model: str, request: GenerateRequest, max_tokens: int, n: int, seed: int, end_ids: Sequence[int]) -> Body:
    """Ask for `n` completions of prompt ids, as ids."""
    assert request.prompt_ids is not None
    return {
        **_sampling(request.sampling),
        "model": model,
        "prompt": list(request.prompt_ids),
        "max_tokens": max_tokens,
        "n": n,
        "seed": seed,
        "stop": list(request.stop),
        "stop_token_ids": list(end_ids),
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
        "return_token_ids": True,
        "logprobs": 0,
    }


def chat_body(model: str, request: GenerateRequest, n: int, seed: int) -> Body:
    """Ask for `n` answers to messages. Stop strings are not sent: a chat server cuts them off without saying which it met."""
    return {
        **_sampling(request.sampling),
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "max_tokens": request.sampling.max_tokens,
        "n": n,
        "seed": seed,
    }


def score_body(model: str, ids: Sequence[int]) -> Body:
    """Ask for the log-probabilities of a prompt's own tokens."""
    return {"model": model, "prompt": list(ids), "max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0}


def _sampling(sampling: Sampling) -> Body:
    body: Body = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    return {**body, "top_k": sampling.top_k} if sampling.top_k else body


def read_completions(
    reply: Mapping[str, Any],
    request: GenerateRequest,
    max_tokens: int,
    tokenizer: Tokenizer,
    end_ids: Sequence[int],
    processed_logprobs: bool,
) -> list[Completion]:
    """The completions of a `completion_body`, checked against what was sent.

    Args:
        processed_logprobs: the server's log-probabilities are those after temperature, top-k and top-p. If they are not and
            these are in use, the completion has none.
    """
    sampling = request.sampling
    comparable = processed_logprobs or (sampling.temperature in (0.0, 1.0) and sampling.top_p == 1.0 and not sampling.top_k)
    completions = []
    for place, choice in enumerate(_choices(reply)):
        ids, echo = _ids(choice.get("token_ids")), choice.get("prompt_token_ids")
        if (echo is None and place == 0) or (echo is not None and echo != list(request.prompt_ids or ())):
            raise ValueError("the prompt ids in the reply are not those that were sent")
        logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
        if not isinstance(logprobs, list) or len(logprobs) != len(ids) or not all(isinstance(p, int | float) for p in logprobs):
            raise ValueError("log-probabilities and token ids do not have the same length")
        if len(ids) > max_tokens:
            raise ValueError(f"{len(ids)} tokens where at most {max_tokens} were asked for")
        reason = _finish_reason(choice)
        if reason is FinishReason.END and not (ids and ids[-1] in end_ids):
            raise ValueError("a finished completion does not end with an end-of-turn token")
        text = tokenizer.decode(ids[:-1] if reason is FinishReason.END else ids)
        completions.append(Completion(text, ids, [float(p) for p in logprobs] if comparable else None, reason))
    return completions


def _finish_reason(choice: Mapping[str, Any]) -> FinishReason:
    if choice.get("finish_reason") == "length":
        return FinishReason.LENGTH
    if choice.get("finish_reason") != "stop":
        raise ValueError(f"finish reason {choice.get('finish_reason')!r}")
    return FinishReason.STOP if isinstance(choice.get("stop_reason"), str) else FinishReason.END


def read_chat(reply: Mapping[str, Any], request: GenerateRequest) -> list[Completion]:
    """The answers to a `chat_body`, cut after the first stop string."""
    completions = []
    for choice in _choices(reply):
        message = choice.get("message")
        if not isinstance(message, dict) or not isinstance(text := message.get("content") or "", str):
            raise ValueError("a choice without a message")
        reason = FinishReason.LENGTH if choice.get("finish_reason") == "length" else FinishReason.END
        cut = first_stop_end(text, request.stop)
        if cut is not None:
            text, reason = text[:cut], FinishReason.STOP
        completions.append(Completion(text, None, None, reason))
    return completions


def read_scores(reply: Mapping[str, Any], ids: Sequence[int]) -> list[float]:
    """The log-probability of each id, 0.0 for the first."""
    entries = _choices(reply)[0].get("prompt_logprobs")
    if not isinstance(entries, list) or len(entries) != len(ids):
        raise ValueError("as many prompt log-probabilities as tokens are needed")
    try:
        return [0.0, *(float(entry[str(token)]["logprob"]) for entry, token in zip(entries[1:], ids[1:], strict=True))]
    except (KeyError, TypeError):
        raise ValueError("a prompt token without its log-probability") from None


def usage(reply: Mapping[str, Any], kind: str) -> int | None:
    """A token count of the server, `prompt_tokens` or `completion_tokens`; None if it gives none."""
    counts = reply.get("usage")
    count = counts.get(kind) if isinstance(counts, dict) else None
    return count if type(count) is int and 0 <= count < 2**53 else None


def _choices(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The choices in order of their index."""
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        raise ValueError("a reply without choices")
    return sorted(choices, key=lambda choice: choice.get("index") or 0)


def _ids(value: object) -> list[int]:
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise ValueError("a choice without token ids")
    return value
