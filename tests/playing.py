"""Small factories for tests that play episodes: models that follow a script, retrievers with fixed hits, whole casts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from searchparty.episodes.types import Episode
from searchparty.errors import Failure, ServiceFailure
from searchparty.models.chatml import ChatMLChat
from searchparty.models.loading import Model
from searchparty.models.scripted import ScriptedEngine
from searchparty.models.types import GenerateRequest, Sampling
from searchparty.questions.types import Question
from searchparty.retrieval.types import Hit, Passage
from searchparty.teams.cast import Cast, Part
from searchparty.teams.play import play
from searchparty.teams.prompts import built_in_prompt
from searchparty.teams.team import Team

PARIS = Question("q1", "What is the capital of France?", ("Paris",), "nq")


@dataclass
class Lines:
    """A script that says, role by role, one line after another, and keeps every request. The last line repeats."""

    by_role: dict[str, Sequence[str | Sequence[str] | Failure]]
    requests: list[GenerateRequest] = field(default_factory=list)

    def __call__(self, request: GenerateRequest) -> str | Sequence[str] | Failure:
        said = sum(earlier.role == request.role for earlier in self.requests)
        self.requests.append(request)
        lines = self.by_role[request.role]
        return lines[min(said, len(lines) - 1)]


@dataclass
class FixedRetriever:
    """Finds the same texts for every query, or fails."""

    texts: Sequence[str] = ("Paris is the capital of France.",)
    failure: Failure | None = None
    queries: list[str] = field(default_factory=list)

    async def search(self, query: str, k: int) -> list[Hit]:
        self.queries.append(query)
        if self.failure is not None:
            raise ServiceFailure(self.failure)
        passages = [Passage(f"p{number}", f"Title {number}", text) for number, text in enumerate(self.texts[:k], start=1)]
        return [Hit(passage, rank, 1.0 / rank) for rank, passage in enumerate(passages, start=1)]


def scripted_model(script: Callable[[GenerateRequest], Any], **options: Any) -> Model:
    """A model that plays a script; token-exact over bytes unless `exchanges_ids=False`."""
    engine = ScriptedEngine(script, **options)
    chat = ChatMLChat() if engine.exchanges_ids else None
    return Model("script", "script", engine, chat, options.get("context_tokens"))


def cast_for(team: Team, model: Model, sampling: Sampling | None = None) -> Cast:
    """All roles of a team played by one model with the built-in prompts."""
    return {role: Part(model, built_in_prompt(prompt), sampling or Sampling()) for role, prompt in team.prompts.items()}


def play_lines(team: Team, lines: Lines, retriever: Any = None, question: Question = PARIS, **options: Any) -> Episode:
    """Play one episode in which every role says its lines."""
    cast = cast_for(team, scripted_model(lines, **options))
    return asyncio.run(play(team, question, cast, retriever or FixedRetriever()))


SEARCHER_LINES = ["<search>capital of France</search>", "<report>Paris is the capital.</report>"]
LEADER_LINES = ["<task>Which city is the capital of France?</task>", "<select>1</select>"]
ANSWER_LINES = ["<answer>Paris</answer>"]


def good_lines(**changes: Sequence[str | Sequence[str] | Failure]) -> Lines:
    """Lines with which every built-in team answers Paris, with some roles' lines replaced."""
    lines: dict[str, Sequence[str | Sequence[str] | Failure]] = {
        "leader": LEADER_LINES, "searcher": SEARCHER_LINES, "answerer": ANSWER_LINES,
    }  # fmt: skip
    return Lines({**lines, **changes})
