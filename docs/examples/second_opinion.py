"""A team of one's own: two agents answer apart from each other, and a third hears both and decides."""

from dataclasses import dataclass
from typing import ClassVar

from searchparty.questions.types import Question
from searchparty.teams.agent import Agent
from searchparty.teams.answering import give_answer
from searchparty.teams.evidence import format_passages
from searchparty.teams.team import Team, require
from searchparty.teams.workspace import Workspace


@dataclass(frozen=True)
class SecondOpinion(Team):
    """Passages to two readers at once; their opinions to a judge, who answers."""

    name: ClassVar = "second_opinion"
    tags: ClassVar = {"reader": ("opinion",), "judge": ("answer",)}
    prompts: ClassVar = {"reader": "reader.yaml", "judge": "judge.yaml"}

    passages: int = 3

    async def run(self, question: Question, workspace: Workspace) -> Agent:
        workspace.begin_step()
        readers = [workspace.agent("reader") for _ in range(2)]
        hits = await workspace.search(question.text, self.passages, by=readers[0])
        for reader in readers:
            reader.tell("task", question=question.text, passages=format_passages(hits, 1000))
        opinions = await workspace.together([reader.act("opinion") for reader in readers])

        workspace.begin_step()
        judge = workspace.agent("judge")
        for reader, opinion in zip(readers, opinions, strict=True):
            judge.observe(f"{reader.name} says: {require(opinion, reader).content}")
        judge.tell("question", question=question.text)
        return await give_answer(judge)
