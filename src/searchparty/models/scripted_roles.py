"""Simple rules that play every role of the built-in teams without any model.

They read the conversation as a model would, so they exercise the whole line: a Searcher searches the task once and reports
the first sentence of each passage; a Leader assigns the question once and selects whatever came back; an Answerer picks a
name out of the reports. They are a stand-in for a model, no attempt at good answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from searchparty.models.types import GenerateRequest

_NAME = re.compile(r"(?:[A-Z][\w'’.-]*|\d{3,4})(?: (?:of |the )?[A-Z][\w'’.-]*)*")
_YES_NO = ("is", "are", "was", "were", "do", "does", "did", "can", "could", "has", "have", "will")


def play_any_role(request: GenerateRequest) -> str:
    """Dispatch on the role that asks; an unknown role answers, so that a new team runs with the script too."""
    latest = request.messages[-1].content
    if request.role == "searcher":
        return searcher(latest)
    if request.role == "leader":
        return leader(latest)
    if request.role == "judge":
        return judge(latest)
    return answerer(latest)


def searcher(latest: str) -> str:
    """Search the task; then report the first sentences of what was found."""
    if "No more searches" in latest or not latest.startswith("Task: "):
        return f"<report>{_first_sentences(latest)}</report>"
    return f"<search>{_line_after(latest, 'Task: ')[:300]}</search>"


def leader(latest: str) -> str:
    """Assign the question as the only task; then select every report that is there."""
    if latest.startswith("Question: "):
        return f"<task>{_line_after(latest, 'Question: ')[:300]}</task>"
    there = re.findall(r"^Report (\d+) \(task: .*\): (?!none, )", latest, flags=re.MULTILINE)
    return f"<select>{', '.join(there) or 'none'}</select>"


def answerer(latest: str) -> str:
    """Say yes to a yes/no question; otherwise name what the evidence names most often and the question does not."""
    evidence, _, question = latest.rpartition("Question: ")
    words = question.strip().split()
    if words and words[0].lower() in _YES_NO:
        return "<answer>yes</answer>"
    names = [
        name
        for name in _NAME.findall(re.sub(r"^(?:Report|Passage) \d+:", "", evidence, flags=re.MULTILINE))
        if name not in question
    ]
    counted = sorted(set(names), key=lambda name: (-names.count(name), names.index(name)))
    return f"<answer>{counted[0] if counted else 'unknown'}</answer>"


def judge(latest: str) -> str:
    """An answer is right if it is one of the golden ones to the letter. A report gets a point for every name, 10 at most."""
    if "Golden answers: " in latest:
        golden = _line_after(latest, "Golden answers: ").split(" | ")
        return f"<verdict>{'right' if _line_after(latest, 'Answer given: ') in golden else 'wrong'}</verdict>"
    return f"<score>{min(10, len(set(_NAME.findall(_line_after(latest, 'Report: ')))))}</score>"


def _line_after(text: str, label: str) -> str:
    return text.partition(label)[2].partition("\n")[0].strip() or "unknown"


def _first_sentences(text: str) -> str:
    bodies = re.findall(r"^Passage \d+: .*\n(.+)$", text, flags=re.MULTILINE)
    return " ".join(re.split(r"(?<=[.!?])\s", body)[0][:120] for body in bodies) or "Nothing was found."


SCRIPTS: Mapping[str, Callable[[GenerateRequest], str]] = {"default": play_any_role}
"""What `--model scripted:NAME` may name."""
