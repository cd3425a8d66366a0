"""The two single-agent baselines: answer from memory, and retrieve once then answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from searchparty.questions.types import Question
from searchparty.teams.agent import Agent
from searchparty.teams.answering import give_answer
from searchparty.teams.evidence import format_passages
from searchparty.teams.team import Team
from searchparty.teams.workspace import Workspace


@dataclass(frozen=True)
class Direct(Team):
    """One call, no retrieval: what the model knows by itself."""

    name: ClassVar = "direct"
    tags: ClassVar = {"answerer": ("answer",)}
    prompts: ClassVar = {"answerer": "direct_answerer"}
    turns: ClassVar = {"answerer": {"question": ("question",)}}
    needs_retriever: ClassVar = False

    max_steps: int | None = 1
    candidates: int = 1
    """Completions of the answer call."""

    async def run(self, question: Question, workspace: Workspace) -> Agent:
        """Ask and answer."""
        workspace.begin_step()
        answerer = workspace.agent("answerer")
        answerer.tell("question", question=question.text)
        return await give_answer(answerer, self.candidates)


@dataclass(frozen=True)
class Rag(Team):
    """The question is the query; one call answers from the passages."""

    name: ClassVar = "rag"
    tags: ClassVar = {"answerer": ("answer",)}
    prompts: ClassVar = {"answerer": "rag_answerer"}
    turns: ClassVar = {"answerer": {"question": ("question", "passages")}}

    max_steps: int | None = 1
    passages: int = 3
    """Passages per query."""
    passage_characters: int = 2000
    """A longer passage is cut there, visibly."""
    candidates: int = 1
    """Completions of the answer call."""

    async def run(self, question: Question, workspace: Workspace) -> Agent:
        """Retrieve once, then answer."""
        workspace.begin_step()
        answerer = workspace.agent("answerer")
        hits = await workspace.search(question.text, self.passages, answerer)
        passages = format_passages(hits, self.passage_characters)
        answerer.tell("question", question=question.text, passages=passages)
        return await give_answer(answerer, self.candidates)
