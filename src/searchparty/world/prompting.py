"""The compact prompts: as few words as a role can do with, for very small models that are trained for the world."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from searchparty.teams.prompts import Prompt, parse_prompt

NAMES = (
    "searcher", "leader", "answerer", "rag_answerer", "direct_answerer", "planner", "qds", "qdp", "qr", "ds", "ag", "as",
)  # fmt: skip
"""As the built-in prompts are called, with the same turns."""


def world_prompt(name: str) -> Prompt:
    """A compact prompt by its name."""
    file = resources.files("searchparty.world") / "prompts" / f"{name}.yaml"
    return parse_prompt(file.read_text(encoding="utf-8"), f"world/{name}.yaml (built in)")


def world_prompt_path(name: str) -> Path:
    """The same as a file, for `roles.<role>.prompt` in a recipe."""
    return Path(str(resources.files("searchparty.world") / "prompts" / f"{name}.yaml"))
