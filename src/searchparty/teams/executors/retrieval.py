"""QR, RA and DS: a better query, the search, and a choice among what it found."""

from __future__ import annotations

import re
from typing import ClassVar

from searchparty.episodes.types import ExecutorUse
from searchparty.teams.actions import Action, ActionProblem
from searchparty.teams.evidence import format_passages
from searchparty.teams.executors.base import Desk, Executor, Task
from searchparty.teams.workflow import Form, Product


class QueryRewriter(Executor):
    """A clearer query for the retriever. The question that is answered stays what it was."""

    form: ClassVar = Form("QR", Product.QUERY)
    purpose: ClassVar = "rewrite the question into a better search query"
    fallback: ClassVar = "the question itself is the query"
    role: ClassVar = "qr"
    tags: ClassVar = ("query",)
    turns: ClassVar = {"question": ("question",)}
    prompt: ClassVar = "qr"

    async def work(self, task: Task, desk: Desk) -> None:
        """Set the query."""
        agent = await self.begin(task, desk)
        agent.tell("question", question=task.question)
        action = await agent.try_to_act(*self.tags)
        if isinstance(action, Action):
            task.query = action.content
        self.note(task, agent, action if isinstance(action, ActionProblem) else None)


class RetrievalAgent(Executor):
    """The search. It is no model: the next agent at work asks the retriever in its name."""

    form: ClassVar = Form("RA", Product.PASSAGES, may_use=(Product.QUERY,))
    purpose: ClassVar = "search for passages"
    fallback: ClassVar = "none: a retriever that fails ends the episode, which is tried again on resume"
    role: ClassVar = None

    async def work(self, task: Task, desk: Desk) -> None:
        """Have the search made."""
        task.search_wanted = True
        task.record.uses.append(ExecutorUse(self.form.abbreviation, None))


class DocumentSelector(Executor):
    """Some of the passages, by their numbers."""

    form: ClassVar = Form("DS", Product.PASSAGES, needs=(Product.PASSAGES,))
    purpose: ClassVar = "keep only the passages that help"
    fallback: ClassVar = "all passages are kept"
    role: ClassVar = "ds"
    tags: ClassVar = ("documents",)
    turns: ClassVar = {"passages": ("passages", "question")}
    prompt: ClassVar = "ds"

    async def work(self, task: Task, desk: Desk) -> None:
        """Keep what is chosen. A number that no passage has makes the whole choice unusable."""
        agent = await self.begin(task, desk)
        hits = task.hits or []
        agent.tell("passages", passages=format_passages(hits, desk.passage_characters), question=task.question)
        action = await agent.try_to_act(*self.tags)
        problem = action if isinstance(action, ActionProblem) else None
        if isinstance(action, Action):
            numbers = chosen_numbers(action.content)
            there = {hit.rank: hit for hit in hits}
            if numbers is None or any(number not in there for number in numbers):
                problem = ActionProblem.BAD_CONTENT
            else:
                task.hits = [hit for rank, hit in there.items() if rank in numbers]
        self.note(task, agent, problem)


def chosen_numbers(content: str) -> list[int] | None:
    """`1, 3` as numbers, `none` as an empty list; None if it is neither."""
    if content == "none":
        return []
    if not re.fullmatch(r"\d{1,3}(\s*,\s*\d{1,3})*", content):
        return None
    return [int(number) for number in content.split(",")]
