"""AG and AS: the answer to a question, and one answer out of those to its sub-questions."""

from __future__ import annotations

from typing import ClassVar

from searchparty.episodes.types import StopReason
from searchparty.teams.actions import Action, ActionProblem
from searchparty.teams.agent import Agent, EpisodeStopped
from searchparty.teams.answering import give_answer, read_answers
from searchparty.teams.evidence import format_passages
from searchparty.teams.executors.base import Desk, Executor, Task
from searchparty.teams.executors.decomposition import UNKNOWN
from searchparty.teams.workflow import Form, Product


class _Answering(Executor):
    tags: ClassVar = ("answer",)
    fallback: ClassVar = "the question counts as unanswered"

    async def answer(self, task: Task, desk: Desk, agent: Agent) -> None:
        """Let the agent answer; the team's last answer may have several candidates."""
        task.answerer = agent
        try:
            await give_answer(agent, desk.candidates if task.is_final else 1)
        except EpisodeStopped as stop:
            if task.is_final or stop.reason is not StopReason.CONTEXT_FULL:
                raise
            self.note(task, agent, ActionProblem.CONTEXT_FULL)
            return
        first = read_answers(agent.transcript)[0]
        task.record.answer = first.content if isinstance(first, Action) else None
        self.note(task, agent, first if isinstance(first, ActionProblem) else None)


class AnswerGenerator(_Answering):
    """The answer, from the passages if there are any, from what the model knows otherwise."""

    form: ClassVar = Form("AG", Product.ANSWER, may_use=(Product.PASSAGES,))
    purpose: ClassVar = "answer the question"
    role: ClassVar = "ag"
    turns: ClassVar = {"question": ("question",), "passages": ("passages", "question")}
    prompt: ClassVar = "ag"

    async def work(self, task: Task, desk: Desk) -> None:
        """Set the answer."""
        agent = await self.begin(task, desk)
        if task.hits is None:
            agent.tell("question", question=task.question)
        else:
            agent.tell("passages", passages=format_passages(task.hits, desk.passage_characters), question=task.question)
        await self.answer(task, desk, agent)


class AnswerSummarization(_Answering):
    """The answer to a question that was decomposed. Nobody plans it: it follows the last sub-answer."""

    form: ClassVar = Form("AS", Product.ANSWER)
    purpose: ClassVar = "answer the question from the answers to its sub-questions"
    role: ClassVar = "as"
    turns: ClassVar = {"answers": ("answers", "question")}
    prompt: ClassVar = "as"

    async def work(self, task: Task, desk: Desk) -> None:
        """Set the answer."""
        agent = await self.begin(task, desk)
        pairs = zip(task.sub_questions, task.sub_answers, strict=True)
        answers = "\n".join(
            f"Sub-question {number}: {question}\nAnswer: {answer or UNKNOWN}"
            for number, (question, answer) in enumerate(pairs, start=1)
        )
        agent.tell("answers", answers=answers, question=task.question)
        await self.answer(task, desk, agent)
