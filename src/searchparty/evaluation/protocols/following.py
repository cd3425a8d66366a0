"""Applying a protocol to an evaluation: it fills in what the recipe leaves open, and refuses what contradicts it.

The retriever alone may be another one, since few have the corpus of a paper, and questions may not say their split, since few
files do; these are departures, which every result names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from searchparty.config.load import merged, parse_recipe
from searchparty.config.recipe import EvalRecipe
from searchparty.errors import UserError
from searchparty.evaluation.protocols.types import Protocol, load_protocol
from searchparty.evaluation.run_folder import flat
from searchparty.questions.types import Question
from searchparty.teams.registry import find_team


def follow_protocol(recipe: EvalRecipe) -> EvalRecipe:
    """The recipe with everything that its protocol says; the recipe itself if it names none.

    Raises:
        UserError: there is no such protocol, or one line for each key of the recipe that contradicts it.
    """
    if recipe.protocol is None:
        return recipe
    protocol = load_protocol(recipe.protocol)
    said = recipe.model_dump(mode="json", exclude_unset=True)
    asked = flat(_settings(protocol, recipe.team.name))
    faults = [
        f"{key}: is {value}, but protocol {protocol.name} says {asked[key]}; leave it out, or evaluate without the protocol"
        for key, value in flat(said).items()
        if key in asked and value != asked[key]
    ]
    if recipe.limit is not None:
        faults.append(f"limit: protocol {protocol.name} says which questions are asked; leave it out")
    for role, spec in recipe.roles.items():
        if spec.sampling.model_dump(exclude_none=True):
            faults.append(f"roles.{role}.sampling: protocol {protocol.name} says how tokens are drawn; leave it out")
    if faults:
        raise UserError(*faults)
    return parse_recipe(EvalRecipe, merged(said, _settings(protocol, recipe.team.name)), f"protocol {protocol.name}")


def filled_in(document: Any) -> Any:
    """The document of an evaluation with what its protocol says wherever it says nothing itself.

    A document that is none, or whose protocol or team cannot be found, comes back as it is; checking it says why.
    """
    if not isinstance(document, dict) or not isinstance(document.get("protocol"), str):
        return document
    team = document.get("team")
    options = dict(team) if isinstance(team, dict) else {"name": team}
    try:
        return merged(_settings(load_protocol(document["protocol"]), str(options["name"])), {**document, "team": options})
    except (UserError, KeyError):
        return document


def describe_protocol(
    name: str | None, retriever: str | None, questions: Sequence[Question], *, searches: bool
) -> dict[str, Any] | None:
    """What the environment of a run says of its protocol: name, version, content, hash, departures; None without one.

    Args:
        retriever: the identity of the one in use; None if it has not said, which may be a departure and counts as one.
        questions: those asked. Where the protocol names a split, one that does not say its own may be a departure too.
        searches: whether the team has a retriever at all; one that has none does not depart from the protocol's.
    """
    if name is None:
        return None
    protocol = load_protocol(name)
    departures = []
    if searches and not (retriever and _names(retriever, protocol.retriever)):
        departures = [f"retriever: the protocol has {protocol.retriever}, the run {retriever or 'one without a name'}"]
    departures += _without_split(protocol, questions)
    return {
        "name": protocol.name,
        "version": protocol.version,
        "sha256": protocol.sha256,
        "document": protocol.document,
        "departures": departures,
    }


def _without_split(protocol: Protocol, questions: Sequence[Question]) -> list[str]:
    """A line for each dataset of which questions were asked that do not say their split."""
    unsaid = Counter(question.dataset for question in questions if question.split is None)
    return [
        f"split: the protocol asks {spec.split} of {name}, and {unsaid[name]} of the questions asked do not say their split; "
        f"if it is {spec.split}, write that down: searchparty questions convert IN -o OUT.jsonl --split {spec.split}"
        for name, spec in protocol.datasets.items()
        if spec.split is not None and unsaid[name]
    ]


def _names(identity: str, word: str) -> bool:
    """Whether a retriever's identity has a word in it, not merely its letters within a hash or a longer word."""
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", identity, re.IGNORECASE) is not None


def _settings(protocol: Protocol, team: str) -> dict[str, Any]:
    """The protocol as a part of a recipe; of the team's options only those that it has."""
    options = {"passages": protocol.passages, "candidates": protocol.candidates, **protocol.budgets.get(team, {})}
    known = {field.name for field in fields(find_team(team))}
    return {
        "team": {name: value for name, value in options.items() if name in known},
        "samples": protocol.samples,
        "sampling": protocol.sampling.model_dump(),
        "scorer": protocol.scorer,
    }
