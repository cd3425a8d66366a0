"""What a result depends on, named in the result itself: a number without it cannot be compared.

Reads the run directory; measures nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any

from searchparty.config.recipe import EvalRecipe
from searchparty.costs.prices import load_prices
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import Scorer


def provenance(run: RunDirectory, recipe: EvalRecipe, scorer: Scorer) -> dict[str, Any]:
    """Protocol, questions, retriever with its corpus, versions, models, decoding, scorer and prices of a run.

    Anything that was not recorded is None.
    """
    environment = run.read_environment()
    protocol = environment.get("protocol")
    if protocol is not None and (own := protocol["document"].get("scorer")) != scorer.name:
        other = f"scorer: the protocol has {own}, these are scores by {scorer.name}"
        protocol = {**protocol, "departures": [*protocol["departures"], other]}
    return {
        "protocol": protocol and {key: protocol[key] for key in ("name", "version", "sha256", "departures")},
        "questions_sha256": environment["questions"].get("asked_sha256"),
        "retriever": environment.get("retriever"),
        "models": environment.get("models"),
        "prompts": environment.get("prompts"),
        "versions": {key: environment.get(key) for key in ("searchparty", "python", "packages")},
        "team": recipe.team.model_dump(),
        "decoding": {
            **recipe.sampling.model_dump(),
            "roles": {role: spec.sampling.model_dump(exclude_none=True) for role, spec in recipe.roles.items()},
            "seed": recipe.seed,
        },
        "samples": recipe.samples,
        "scorer": scorer.name,
        "prices": _prices(recipe),
    }


def _prices(recipe: EvalRecipe) -> dict[str, str] | None:
    if recipe.prices is None or not recipe.prices.is_file():
        return None
    digest = hashlib.sha256(recipe.prices.read_bytes()).hexdigest()
    return {"dated": load_prices(recipe.prices).dated.isoformat(), "sha256": digest}
