"""Asking a model whether answers are right. Knows a prompt and a model; what the verdicts are used for is not its business."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from searchparty.errors import Failure
from searchparty.models.loading import Model
from searchparty.models.types import GenerateRequest, Message, Sampling
from searchparty.questions.types import Question
from searchparty.teams.prompts import Prompt, load_prompt, parse_prompt

VERSION = "answers-1"
"""The prompt that is used unless another one is given."""
TAGS = ("verdict", "think")
FIELDS = ("question", "golden", "answer")
MOST_CHARACTERS = 1000
"""A longer answer is cut there, visibly."""
_VERDICT = re.compile(r"<verdict>\s*(right|wrong)\s*</verdict>")
_BARE = re.compile(r"\s*(right|wrong)\.?\s*", re.IGNORECASE)
"""A whole reply: small models leave the tags out, and nothing else can be meant."""


@dataclass(frozen=True, slots=True)
class VersionedPrompt:
    """A prompt with what it is cited by."""

    version: str
    """Name of its file without ending."""
    digest: str
    """Of its contents: a file that was changed under its old name is found out."""
    prompt: Prompt


class AnswerJudge:
    """A judge over a loaded model, which stays the caller's to close."""

    def __init__(self, model: Model, prompt: VersionedPrompt, *, max_tokens: int = 64) -> None:
        self.prompt = prompt
        self.model = model
        self._sampling = Sampling(temperature=0.0, max_tokens=max_tokens)

    async def verdicts(self, answers: Sequence[tuple[Question, str]]) -> list[bool | str]:
        """For each answer whether it is right, or why there is no usable verdict."""
        replies = await self.model.engine.generate([self._request(*one) for one in answers]) if answers else []
        found: list[bool | str] = []
        for reply in replies:
            if isinstance(reply, Failure):
                found.append(reply.detail)
                continue
            text = reply.candidates[0].text
            verdict = read_verdict(text)
            found.append(f"no single <verdict>right</verdict> or wrong in {text!r:.80}" if verdict is None else verdict)
        return found

    def _request(self, question: Question, answer: str) -> GenerateRequest:
        shown = answer if len(answer) <= MOST_CHARACTERS else answer[:MOST_CHARACTERS] + " […]"
        values = {"question": question.text, "golden": " | ".join(question.golden_answers), "answer": shown}
        prompt, chat = self.prompt.prompt, self.model.chat
        content = prompt.render("answer", values, TAGS)
        system = [Message("system", prompt.system)] if prompt.system else []
        messages = (*system, *prompt.examples, Message("user", content))
        ids = None
        if chat is not None and self.model.engine.exchanges_ids:
            ids = [
                *chat.open(prompt.system, prompt.examples),
                *chat.user(content, first=not prompt.examples),
                *chat.begin_action(),
            ]
        return GenerateRequest(messages, ids, self._sampling, 0, 1, ("</verdict>",), "judge")


def read_verdict(text: str) -> bool | None:
    """The verdict of a reply, what was thought before it left out; None unless there is exactly one."""
    reply = text.rpartition("</think>")[2]
    if bare := _BARE.fullmatch(reply):
        return bare[1].lower() == "right"
    found = _VERDICT.findall(reply)
    return found[0] == "right" if len(found) == 1 else None


def answer_prompt(path: Path | None = None) -> VersionedPrompt:
    """A prompt file, or the built-in one. Raises UserError if it cannot tell the turn `answer`."""
    if path is None:
        text = (resources.files("searchparty.judging") / f"{VERSION}.yaml").read_text(encoding="utf-8")
        prompt, version = parse_prompt(text, f"{VERSION}.yaml (built in)"), VERSION
    else:
        prompt, version = load_prompt(path), path.stem
        prompt.render("answer", dict.fromkeys(FIELDS, ""), TAGS)
    return VersionedPrompt(version, hashlib.sha256(repr(prompt.contents).encode("utf-8", "replace")).hexdigest()[:16], prompt)
