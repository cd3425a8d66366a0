"""Who plays what: for every role of a team its model, its prompt and how its tokens are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from searchparty.models.loading import Model
from searchparty.models.types import Sampling
from searchparty.teams.prompts import Prompt


@dataclass(frozen=True)
class Part:
    """One role's part. Roles may share a model; they then share its weights and its batches."""

    model: Model
    prompt: Prompt
    sampling: Sampling


Cast = Mapping[str, Part]
"""Role to part. A team finds every one of its roles in it."""
