"""Served teams whose models follow a script."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from playing import cast_for, scripted_model
from running_http import running_application
from searchparty.errors import Failure, ServiceFailure
from searchparty.evaluation.staging import Models, Stage
from searchparty.models.loading import Model
from searchparty.models.scripted import ScriptedEngine
from searchparty.models.types import Generated, GenerateRequest
from searchparty.retrieval.batching import AsyncRetriever
from searchparty.retrieval.types import Hit, Passage
from searchparty.serving.server import TeamServer
from searchparty.serving.service import Limits
from searchparty.teams.team import Team

PARIS = Passage("p1", "France", "Paris is the capital of France.")


@dataclass
class OnePassage:
    """Finds one passage for every query, or fails."""

    failure: Failure | None = None
    identity: str = "one passage"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if self.failure is not None:
            raise ServiceFailure(self.failure)
        return [[Hit(PARIS, 1, 1.0)] for _ in queries]


@dataclass
class Gate:
    """An engine that holds every request until it is opened, and counts those it holds and those that were given up."""

    said: str = "<answer>Paris</answer>"
    waiting: int = 0
    most: int = 0
    cancelled: int = 0
    opened: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Event = field(default_factory=threading.Event)
    given_up: threading.Event = field(default_factory=threading.Event)

    @property
    def exchanges_ids(self) -> bool:
        return True

    async def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failure]:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        self.arrived.set()
        try:
            while not self.opened.is_set():  # noqa: ASYNC110 - it is set in another thread
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled += 1
            self.given_up.set()
            raise
        finally:
            self.waiting -= 1
        return await ScriptedEngine(lambda request: self.said).generate(requests)

    async def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float] | Failure]:
        return [[0.0] * len(sequence) for sequence in sequences]

    async def close(self) -> None:
        """Nothing to free."""

    def model(self) -> Model:
        return Model("gate", "gate", self, scripted_model(lambda request: "").chat, None)


@contextmanager
def serving(
    team: Team, model: Model, *, retriever: Any = None, limits: Limits | None = None, **options: Any
) -> Iterator[httpx.Client]:
    """A client of a served team."""
    stage = Stage(team, cast_for(team, model), AsyncRetriever(retriever or OnePassage()), Models(), owns_models=True)
    application = TeamServer(stage, 0, limits=limits, **options)
    with running_application(application) as address, httpx.Client(base_url=address, trust_env=False, timeout=20) as client:
        yield client


def chat(client: httpx.Client, question: str = "What is the capital of France?", **more: Any) -> httpx.Response:
    """Ask as OpenAI's clients do."""
    return client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": question}], **more})
