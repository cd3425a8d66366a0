"""Prompts as files: what a role is told, its worked examples, and the wording of each kind of turn.

A prompt file is YAML with three keys: `system` (text), `examples` (pairs of user and assistant turns, earlier turns of the
chat) and `turns` (name to template). A template's `{names}` are filled with foreign text, which is escaped first; the
template's own words are trusted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import yaml

from searchparty.errors import UserError
from searchparty.models.types import Message
from searchparty.teams.escaping import escape_tags

_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Prompt:
    """One role's prompt. Two prompts with equal contents lead to equal token ids."""

    source: str
    """The file, for error messages and for the run's record."""
    system: str
    examples: Sequence[Message]
    turns: Mapping[str, str]

    @property
    def contents(self) -> tuple[object, ...]:
        """Everything but where it was read."""
        return self.system, tuple(self.examples), tuple(sorted(self.turns.items()))

    def render(self, turn: str, values: Mapping[str, str], tags: Sequence[str]) -> str:
        """The text of one user turn.

        Args:
            turn: name of the template.
            values: foreign text by field name; the tags in it are escaped.
            tags: all tags of the team.

        Raises:
            UserError: for a template that is missing or that has a field without a value.
        """
        if turn not in self.turns:
            raise UserError(f"{self.source}: turns.{turn}: this template is missing; add it to the prompt file")
        pieces = _FIELD.split(self.turns[turn])
        unknown = sorted(set(pieces[1::2]) - values.keys())
        if unknown:
            known = ", ".join(sorted(values)) or "none"
            raise UserError(f"{self.source}: turns.{turn}: unknown field {{{unknown[0]}}}; known here: {known}")
        pieces[1::2] = [escape_tags(values[field], tags) for field in pieces[1::2]]
        return "".join(pieces).strip()

    def faults(self, turns: Mapping[str, Sequence[str]]) -> list[str]:
        """One line for each turn of a team that this prompt cannot tell: missing, with unknown fields, or with no field at all.

        Args:
            turns: name of each turn, with the fields that the team fills.
        """
        found = []
        for turn, fields in turns.items():
            place = f"{self.source}: turns.{turn}"
            if turn not in self.turns:
                found.append(f"{place}: this template is missing; add it to the prompt file")
                continue
            used = set(_FIELD.findall(self.turns[turn]))
            found += [
                f"{place}: unknown field {{{field}}}; known: {', '.join(fields) or 'none'}"
                for field in sorted(used - set(fields))
            ]
            if fields and not used & set(fields):
                found.append(f"{place}: uses none of its fields; known: {', '.join(fields)}")
        return found


def load_prompt(path: Path) -> Prompt:
    """Read a prompt file. Raises UserError naming file and key for anything that is not in the form described above."""
    if not path.is_file():
        raise UserError(f"{path}: no such prompt file; check the path in roles.<role>.prompt")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as UTF-8 text ({error}); save it as such") from None
    return parse_prompt(text, str(path))


def built_in_prompt(name: str) -> Prompt:
    """One of the prompts that come with the package, by its file name without ending."""
    file = resources.files("searchparty.teams") / "prompts" / f"{name}.yaml"
    return parse_prompt(file.read_text(encoding="utf-8"), f"{name}.yaml (built in)")


def parse_prompt(text: str, source: str) -> Prompt:
    """Parse the text of a prompt file; `source` names it in errors."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UserError(
            f"{source}:{mark.line + 1 if mark else 1}: not valid YAML; see the built-in prompts for the form"
        ) from None
    if not isinstance(document, dict):
        raise UserError(f"{source}: a prompt file has the keys system, examples and turns")
    faults = [
        f"{source}: {key}: unknown key; a prompt file has system, examples and turns"
        for key in document
        if key not in ("system", "examples", "turns")
    ]
    system, examples, turns = document.get("system", ""), document.get("examples") or [], document.get("turns") or {}
    if not isinstance(system, str):
        faults.append(f"{source}: system: must be text")
    if not (isinstance(turns, dict) and all(isinstance(value, str) for value in turns.values())):
        faults.append(f"{source}: turns: must map a name to a template text")
    if not (
        isinstance(examples, list) and all(isinstance(pair, dict) and set(pair) == {"user", "assistant"} for pair in examples)
    ):
        faults.append(f"{source}: examples: must be a list of pairs with the keys user and assistant")
    if faults:
        raise UserError(*faults)
    messages: list[Message] = []
    for pair in examples:
        messages += [Message("user", str(pair["user"]).strip()), Message("assistant", str(pair["assistant"]).strip())]
    return Prompt(source, system.strip(), tuple(messages), turns)
