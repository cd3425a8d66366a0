"""From the words after `--model` to an engine that is ready. Knows the forms of a model's name; the engines know the rest."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from searchparty.errors import UserError
from searchparty.models.chat import ChatFormat
from searchparty.models.chatml import ChatMLChat
from searchparty.models.scripted import ScriptedEngine
from searchparty.models.types import Engine


@dataclass(frozen=True)
class Model:
    """One loaded model, with everything an agent needs to talk to it."""

    name: str
    """What the user called it."""
    identity: str
    """Name and content: equal identities mean equal weights (or the same script). Recorded with every run."""
    engine: Engine
    chat: ChatFormat | None
    """None if the model exchanges text only; its server then renders the messages."""
    context_tokens: int | None
    """Most tokens of prompt and completion together; None if unknown or without limit."""


def load_model(spec: str) -> Model:
    """Load the model that `spec` names.

    Args:
        spec: `scripted:NAME`.

    Raises:
        UserError: for a name of no known form, or a model that cannot be loaded.
    """
    if spec.startswith("scripted:"):
        return _scripted(spec)
    raise UserError(f"--model {spec}: not a model; use scripted:NAME")


def _scripted(spec: str) -> Model:
    scripts = importlib.import_module("searchparty.models.scripted_roles").SCRIPTS
    script = scripts.get(spec.removeprefix("scripted:"))
    if script is None:
        raise UserError(
            f"--model {spec}: no such script; there are: {', '.join(f'scripted:{name}' for name in sorted(scripts))}"
        )
    return Model(spec, spec, ScriptedEngine(script), ChatMLChat(), None)
