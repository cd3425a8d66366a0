"""QDS and QDP: a question into sub-questions, one after another or all at once."""

from __future__ import annotations

import re
from typing import ClassVar

from searchparty.teams.actions import ActionProblem
from searchparty.teams.executors.base import Desk, Executor, Task
from searchparty.teams.workflow import Form, Product

REFERENCE = re.compile(r"#(\d+)")
"""`#2` in a serial sub-question stands for the answer to the second."""
FEWEST = 2
"""A decomposition into one sub-question decomposes nothing."""
UNKNOWN = "unknown"
"""What stands for an earlier answer that nobody found."""


class _Decomposition(Executor):
    tags: ClassVar = ("question",)
    fallback: ClassVar = "the question is answered undecomposed, by the team's fallback workflow"
    turns: ClassVar = {"question": ("question", "max_sub_questions")}

    async def work(self, task: Task, desk: Desk) -> None:
        """Set the sub-questions. None are set if their number or their references are not usable."""
        agent = await self.begin(task, desk)
        agent.tell("question", question=task.question, max_sub_questions=str(desk.max_sub_questions))
        action = await agent.try_to_act(*self.tags)
        problem: ActionProblem | None = action if isinstance(action, ActionProblem) else None
        if not isinstance(action, ActionProblem):
            count = len(action.contents)
            if FEWEST <= count <= desk.max_sub_questions and references_hold(action.contents, serial=self.serial):
                task.sub_questions = action.contents
            else:
                problem = ActionProblem.BAD_CONTENT
        self.note(task, agent, problem)


class QueryDecompositionSerial(_Decomposition):
    """Sub-questions that need one another's answers, in order."""

    form: ClassVar = Form("QDS", Product.SUB_QUESTIONS)
    purpose: ClassVar = "split the question into sub-questions that need earlier answers"
    role: ClassVar = "qds"
    prompt: ClassVar = "qds"
    serial: ClassVar = True


class QueryDecompositionParallel(_Decomposition):
    """Sub-questions that do not need one another, answered at the same time."""

    form: ClassVar = Form("QDP", Product.SUB_QUESTIONS)
    purpose: ClassVar = "split the question into independent sub-questions"
    role: ClassVar = "qdp"
    prompt: ClassVar = "qdp"


def references_hold(sub_questions: tuple[str, ...], *, serial: bool) -> bool:
    """Whether every reference points to an earlier sub-question; there may be none in a parallel decomposition."""
    references = [(place, int(number)) for place, text in enumerate(sub_questions, 1) for number in REFERENCE.findall(text)]
    return all(1 <= number < place for place, number in references) if serial else not references


def filled_in(sub_question: str, answers: list[str | None]) -> str:
    """A serial sub-question with the earlier answers in the place of the references to them."""
    return REFERENCE.sub(lambda reference: answers[int(reference[1]) - 1] or UNKNOWN, sub_question)
