"""What a role can know when it must act: its own conversation, taken apart. Works for the built-in and the compact prompts.

Worked examples are earlier turns of the same chat. The conversation proper begins where its task or question was first given; a
prompt may repeat the task in later turns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from searchparty.models.types import Message

_OPENING = re.compile(r"^(?:task|question): (.*)$", re.IGNORECASE | re.MULTILINE)
_REPORT = re.compile(r"^Report (\d+)(?: \(task: (?P<task>.*?)\))?: (.*)$", re.MULTILINE)
_NO_REPORT = "none, the searcher gave no report."


@dataclass(frozen=True, slots=True)
class Report:
    """One report as the Leader reads it."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """An agent's history from its task on."""

    asked: str
    """The task or question; empty if the prompt has neither line."""
    seen: tuple[str, ...]
    """Its user turns, the one with the task first."""
    said: tuple[str, ...]
    """Its own turns."""

    @property
    def evidence(self) -> str:
        """All that it was shown."""
        return "\n".join(self.seen)

    @property
    def must_finish(self) -> bool:
        """Whether the last user turn says that only a report, or a selection, is possible now."""
        latest = self.seen[-1].lower() if self.seen else ""
        return "report now" in latest or "select reports now" in latest

    def own(self, tag: str) -> list[str]:
        """What it wrote between tags of this name in its earlier turns."""
        return [content for turn in self.said for content in re.findall(rf"<{tag}>(.*?)</{tag}>", turn, re.DOTALL)]

    def reports(self) -> list[Report]:
        """The reports that came; searchers that gave none are left out."""
        found = (Report(int(match[1]), match[3]) for match in _REPORT.finditer(self.evidence))
        return [report for report in found if report.text.strip() != _NO_REPORT]


def read_conversation(messages: Sequence[Message]) -> Conversation:
    """Take a request's messages apart."""
    openings = [
        (number, found[-1])
        for number, message in enumerate(messages)
        if message.role == "user" and (found := _OPENING.findall(message.content))
    ]
    asked = openings[-1][1] if openings else ""
    start = len(messages) - 1
    for number, text in reversed(openings):
        if text != asked:
            break
        start = number
    seen = tuple(message.content for message in messages[start:] if message.role == "user")
    said = tuple(message.content for message in messages[start:] if message.role == "assistant")
    return Conversation(asked.strip(), seen, said)
