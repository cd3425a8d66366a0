"""Answers in the form of OpenAI's chat completions: whole, or as chunks of a stream.

The content is the answer and nothing else. An attempt without an answer has content null and says why in `refusal`. In a
stream the team's steps come as `reasoning_content`, which clients show apart or pass over.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from searchparty.costs.spending import spending_of
from searchparty.episodes.types import Episode, Retrieval, Span, SpanKind, Transcript
from searchparty.http_server.asgi import RequestError
from searchparty.serving.replies import answer_of, ending_of

END_OF_STREAM = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Completion:
    """The head that an answer and all its chunks share."""

    team: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, episodes: Sequence[Episode]) -> bytes:
        """The answer in one piece."""
        choices = [
            {"index": episode.sample, "message": {"role": "assistant", **_said(episode)}, "finish_reason": "stop"}
            for episode in episodes
        ]
        head = self._head("chat.completion")
        return orjson.dumps({**head, "choices": choices, "usage": usage(episodes), "searchparty": _endings(episodes)})

    def step(self, sample: int, text: str) -> bytes:
        """A chunk that tells of a step."""
        return self._chunk([_choice(sample, {"role": "assistant", "reasoning_content": f"{text}\n"})])

    def last(self, episodes: Sequence[Episode], *, include_usage: bool) -> Iterator[bytes]:
        """The chunks with the answers, and the end of the stream."""
        for episode in episodes:
            yield self._chunk([_choice(episode.sample, {"role": "assistant", **_said(episode)})])
            yield self._chunk([_choice(episode.sample, {}, "stop")], searchparty=_endings([episode]))
        if include_usage:
            yield self._chunk([], usage=usage(episodes))
        yield END_OF_STREAM

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return _event({**self._head("chat.completion.chunk"), "choices": choices, **more})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.team}


@dataclass(frozen=True)
class StepListener:
    """Hands over what agents write and find, one line for each."""

    tell: Callable[[str], None]

    def on_span(self, transcript: Transcript, span: Span) -> None:
        """Tell what an agent wrote."""
        if span.kind is SpanKind.ACTION:
            self.tell(f"{transcript.agent}: {span.text.strip()}")

    def on_search(self, retrieval: Retrieval) -> None:
        """Tell what was found."""
        found = "; ".join(hit.title for hit in retrieval.hits) or "nothing"
        if retrieval.failure is not None:
            found = f"failed, {retrieval.failure.kind}"
        self.tell(f"search “{retrieval.query}”: {found}")


def error_body(error: RequestError) -> bytes:
    """A refusal in the form that OpenAI's clients read."""
    return orjson.dumps({"error": {"message": str(error), "type": error.kind, "param": None, "code": error.kind}})


def error_event(error: RequestError) -> bytes:
    """A refusal in a stream that has begun."""
    return b"data: " + error_body(error) + b"\n\n" + END_OF_STREAM


def usage(episodes: Sequence[Episode]) -> dict[str, Any] | None:
    """Tokens of all roles and attempts; None where a model does not say."""
    spent = [tokens for episode in episodes for tokens in spending_of(episode).by_role.values()]
    new, cached, out = ([getattr(one, name) for one in spent] for name in ("uncached_input", "cached_input", "output"))
    if any(count is None for count in (*new, *cached, *out)):
        return None
    read, written = sum(new) + sum(cached), sum(out)
    return {
        "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": sum(cached)},
    }  # fmt: skip


def _said(episode: Episode) -> dict[str, Any]:
    answer = answer_of(episode)
    return {"content": answer, "refusal": None if answer is not None else f"no answer: {ending_of(episode)}"}


def _endings(episodes: Sequence[Episode]) -> list[dict[str, Any]]:
    return [{"index": episode.sample, "stop_reason": episode.stop_reason, "seed": episode.seed} for episode in episodes]


def _choice(sample: int, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": sample, "delta": delta, "finish_reason": finish_reason, "logprobs": None}


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"
