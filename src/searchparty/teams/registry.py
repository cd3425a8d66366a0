"""From a team's name to its class: the built-in ones, or one of the user's own in a Python file or an installed module."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from searchparty.errors import UserError
from searchparty.teams.baselines import Direct, Rag
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical
from searchparty.teams.planned import Planned
from searchparty.teams.team import Team

BUILT_IN: dict[str, type[Team]] = {team.name: team for team in (Direct, Rag, Chained, Hierarchical, Planned)}


def find_team(name: str) -> type[Team]:
    """The class that a name stands for.

    Args:
        name: a built-in name, `path/to/file.py:ClassName`, or `installed.module:ClassName`. Naming a file runs it.

    Raises:
        UserError: for a name, file or class that is not there.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    place, separator, class_name = name.rpartition(":")
    if not separator:
        near = get_close_matches(name, BUILT_IN, n=1)
        hint = f"did you mean {near[0]}?" if near else f"built in: {', '.join(BUILT_IN)}; your own: path/to/file.py:ClassName"
        raise UserError(f"team {name}: no such team; {hint}")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place, name)
    team = getattr(module, class_name, None)
    if not (inspect.isclass(team) and issubclass(team, Team) and not inspect.isabstract(team)):
        found = [
            key
            for key, value in vars(module).items()
            if inspect.isclass(value) and issubclass(value, Team) and value is not Team
        ]
        raise UserError(f"team {name}: {place} has no team of that name; it has: {', '.join(found) or 'none'}")
    return team


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"team: {path}: no such file; give the path from the folder you are in")
    name = f"searchparty_team_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"team: {path}: running the file raised {type(error).__name__}: {error}") from error
    return module


def _load_module(place: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ImportError as error:
        raise UserError(f"team {name}: the module {place} cannot be imported ({error})") from None


def make_team(team: type[Team], options: dict[str, Any]) -> Team:
    """Build a team from a recipe's options. Raises UserError with one line per unknown option or wrong value."""
    from pydantic import TypeAdapter, ValidationError

    known = [field.name for field in fields(team)]
    faults = []
    for key in options:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            faults.append(
                f"team.{key}: unknown option of {team.name}; "
                + (f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}")
            )
    try:
        made = TypeAdapter(team).validate_python({key: value for key, value in options.items() if key in known})
    except ValidationError as error:
        for fault in error.errors():
            place = ".".join(str(part) for part in ("team", *fault["loc"]))
            faults.append(f"{place}: {fault['msg'].removeprefix('Value error, ')}")
        raise UserError(*faults) from None
    if faults:
        raise UserError(*faults)
    return made
