"""The base of everything in this room that is written in a recipe."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """Unknown keys are faults, numbers are finite, and what was loaded does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
