"""A judge of reports in the generated world: stands in for an LLM judge (Prompted Critic) where everything runs on a laptop.

It knows the world's facts, and reads a report with the world's language: what of the facts that the task needs is stated, less
what is stated and not true. It judges the report alone, as an LLM judge does, and not what led to it.
"""

from __future__ import annotations

import re

from searchparty.models.types import GenerateRequest
from searchparty.world.knowledge import Knowledge
from searchparty.world.language import read_facts, read_question
from searchparty.world.types import World

BEST = 10
_TASK = re.compile(r"^Task:\s*(?:task:|question:)?\s*(.*)$", re.IGNORECASE | re.MULTILINE)
_REPORT = re.compile(r"<report>(.*?)</report>", re.DOTALL)


class WorldJudge:
    """A script for `ScriptedEngine` that answers the built-in judge's prompt with `<score>N</score>`, N from 0 to 10."""

    def __init__(self, world: World) -> None:
        self._facts = frozenset(world.facts)
        self._knowledge = Knowledge(world.facts)

    def __call__(self, request: GenerateRequest) -> str:
        """Half the best score for a task that is no question of the world: nothing can be said about its report."""
        text = request.messages[-1].content
        task, report = _TASK.search(text), _REPORT.search(text)
        inquiry = read_question(task[1].strip()) if task else None
        if inquiry is None:
            return f"<score>{BEST // 2}</score>"
        needed = {fact for chain in inquiry.chains for fact in self._knowledge.walk(chain).used}
        stated = set(read_facts(report[1])) if report else set()
        right = len(stated & needed) / len(needed) if needed else 0.0
        wrong = len(stated - self._facts) / len(stated) if stated else 0.0
        return f"<score>{max(0, round(BEST * (right - wrong)))}</score>"
