"""Serves one team over HTTP.

`POST /v1/chat/completions` and `GET /v1/models` are OpenAI's, `POST /ask` is the native one; `GET /health` says that it runs,
`GET /metrics` is for Prometheus. Every refusal is `{"error": {"message": …, "type": …}}`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

import orjson

from searchparty.costs.prices import Prices
from searchparty.episodes.types import Episode
from searchparty.evaluation.staging import Stage
from searchparty.http_server.application import Application
from searchparty.http_server.asgi import (
    Bodies,
    Receive,
    RequestError,
    Scope,
    Send,
    require_method,
    respond,
    unless_disconnected,
)
from searchparty.http_server.prometheus import CONTENT_TYPE
from searchparty.serving.chat import Completion, StepListener, error_body, error_event
from searchparty.serving.metrics import Metrics
from searchparty.serving.replies import ask_reply, ending_of, status_of
from searchparty.serving.service import Attempt, Limits, Service
from searchparty.serving.wire import Asked, ChatAsked, parse_ask, parse_chat

ASK, CHAT, MODELS = "/ask", "/v1/chat/completions", "/v1/models"
_PATHS = f"POST {CHAT} and {ASK}, GET {MODELS}, /health and /metrics"
_HELD_BODIES = 64
"""So many of the longest bodies are held at once."""


class TeamServer(Application):
    """The application over one stage, which it closes at its end."""

    def __init__(
        self,
        stage: Stage,
        seed: int,
        *,
        limits: Limits | None = None,
        token: str | None = None,
        prices: Prices | None = None,
        record: Callable[[Episode], None] = lambda episode: None,
    ) -> None:
        """Args:
        seed: of questions that name none.
        limits: what the server takes on.
        token: what every client must send as a bearer token, except to `/health`; None for no such thing.
        prices: for what an episode costs in USD.
        record: called with every episode as it ends.
        """
        super().__init__(token)
        limits = limits or Limits()
        self._prices = prices
        self._metrics = Metrics(prices)
        self._record = record
        self._service = Service(stage, seed, limits, self._on_episode)
        self._bodies = Bodies(limits.body_bytes, _HELD_BODIES * limits.body_bytes)
        self._created = int(time.time())

    async def handle(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """See `Application.handle`."""
        team = self._service.team
        gets = {
            "/health": {"status": "ok", "team": team},
            MODELS: {"object": "list", "data": [self._model()]},
            f"{MODELS}/{team}": self._model(),
        }
        if path in gets:
            require_method(scope["method"], "GET")
            await respond(send, 200, orjson.dumps(gets[path]))
        elif path == "/metrics":
            require_method(scope["method"], "GET")
            await respond(send, 200, self._metrics.text(self._service.under_way), content_type=CONTENT_TYPE)
        elif path in (ASK, CHAT):
            require_method(scope["method"], "POST")
            async with self._bodies.read(scope, receive) as body:
                await (self._ask if path == ASK else self._chat)(body, receive, send)
        else:
            raise RequestError(404, f"no such path {scope['path']!r}; there are {_PATHS}", "not_found")

    def count_error(self, kind: str) -> None:
        """See `Application.count_error`."""
        self._metrics.error(kind)

    def error_body(self, error: RequestError) -> bytes:
        """See `Application.error_body`."""
        return error_body(error)

    async def close(self) -> None:
        """See `Application.close`."""
        await self._service.close()

    def _model(self) -> dict[str, object]:
        return {"id": self._service.team, "object": "model", "created": self._created, "owned_by": "searchparty"}

    def _on_episode(self, episode: Episode) -> None:
        self._metrics.episode(episode)
        self._record(episode)

    async def _ask(self, body: bytes, receive: Receive, send: Send) -> None:
        asked, started = parse_ask(body), time.perf_counter()
        with self._service.accepted(asked):
            attempts = await unless_disconnected(receive, self._service.answer(asked))
        self._metrics.question(ASK, time.perf_counter() - started)
        status = status_of([attempt.episode for attempt in attempts])
        await respond(send, status, orjson.dumps(ask_reply(attempts, self._prices)))

    async def _chat(self, body: bytes, receive: Receive, send: Send) -> None:
        chat, started = parse_chat(body, self._service.team), time.perf_counter()
        with self._service.accepted(chat.asked):
            if chat.stream:
                await self._stream(chat, receive, send)
            else:
                episodes = await unless_disconnected(receive, self._episodes(chat.asked, lambda sample, line: None))
                await respond(send, 200, Completion(self._service.team).whole(episodes))
        self._metrics.question(CHAT, time.perf_counter() - started)

    async def _episodes(self, asked: Asked, tell: Callable[[int, str], None]) -> list[Episode]:
        """All attempts; `tell` hears of every step. Raises RequestError if services or the team's code let all of them fail."""
        attempts: list[Attempt] = await self._service.answer(asked, lambda sample: StepListener(partial(tell, sample)))
        episodes = [attempt.episode for attempt in attempts]
        if (status := status_of(episodes)) != 200:
            raise RequestError(status, f"no answer: {ending_of(episodes[0])}", episodes[0].stop_reason.value)
        return episodes

    async def _stream(self, chat: ChatAsked, receive: Receive, send: Send) -> None:
        """Send steps as they come, then the answers. What fails now is told in the stream: its status was sent."""
        completion, chunks = Completion(self._service.team), asyncio.Queue[bytes | None]()

        async def play() -> None:
            try:
                episodes = await self._episodes(
                    chat.asked, lambda sample, line: chunks.put_nowait(completion.step(sample, line))
                )
                for chunk in completion.last(episodes, include_usage=chat.include_usage):
                    chunks.put_nowait(chunk)
            except RequestError as error:
                self._metrics.error(error.kind)
                chunks.put_nowait(error_event(error))
            finally:
                chunks.put_nowait(None)

        async def pass_on() -> None:
            while (chunk := await chunks.get()) is not None:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        playing = asyncio.create_task(play())
        try:
            await unless_disconnected(receive, pass_on())
            await playing
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
