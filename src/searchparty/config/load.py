"""Reading recipes: a YAML file and those that it extends, then overrides, then every fault at once, one line each.

`extends: other.yaml` (relative to the file that says so) takes another recipe and changes what is said beside it: mappings are
merged key by key, everything else is replaced.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, Tag, ValidationError

from searchparty.errors import UserError

R = TypeVar("R", bound=BaseModel)


_NAMED_BY = {"team": "name", "credit": "extends"}
"""What a mapping's name stands under that is written as a bare word; for all others, models, it is `spec`."""


def load_recipe(recipe: type[R], path: Path | None, overrides: Sequence[str], settings: Mapping[str, Any]) -> R:
    """Build a recipe.

    Args:
        recipe: the class of the recipe.
        path: its YAML file; None starts from nothing.
        overrides: `key.path=value` words; the value is read as YAML.
        settings: values from command-line options, which win over the file; None values are passed over.

    Raises:
        UserError: with one line per fault.
    """
    source = str(path) if path else "command line"
    document = _read_extended(path, []) if path else {}
    for key, value in settings.items():
        if value is not None:
            document[key] = value
    faults = []
    for word in overrides:
        fault = _override(document, word)
        if fault:
            faults.append(fault)
    try:
        made = parse_recipe(recipe, document, source)
    except UserError as error:
        raise UserError(*faults, *error.lines) from None
    if faults:
        raise UserError(*faults)
    return made


def split_words(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The recipe file and the overrides among the words of a command. Raises UserError if there are two files."""
    files = [word for word in words if "=" not in word]
    if len(files) > 1:
        raise UserError(f"{files[1]}: one recipe file is enough; overrides have the form key.path=value")
    return (Path(files[0]) if files else None), [word for word in words if "=" in word]


def parse_recipe(recipe: type[R], document: Mapping[str, Any], source: str) -> R:
    """The recipe that a document holds; `source` names it. Raises UserError with one line per fault."""
    try:
        return recipe.model_validate(document)
    except ValidationError as error:
        raise UserError(*(line for fault in error.errors() for line in _lines(recipe, source, fault))) from None


def dump_recipe(recipe: BaseModel) -> str:
    """The complete recipe as YAML."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


class _UniqueKeys(yaml.SafeLoader):
    """The safe loader, but a key that stands twice in one mapping is an error instead of the last one winning."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key_node.start_mark)
            if key in keys:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key} stands twice", key_node.start_mark)
            keys.add(key)
        return super().construct_mapping(node, deep)


def _read_yaml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(f"{path}: no such recipe; check the path")
    try:
        document = _UniqueKeys(path.read_text(encoding="utf-8")).get_single_data()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        raise UserError(f"{path}:{mark.line + 1 if mark else 1}: not valid YAML ({getattr(error, 'problem', error)})") from None
    except (ValueError, RecursionError) as error:  # such as the date 2026-13-45, or a thousand brackets
        raise UserError(f"{path}: a value cannot be read ({error}); put it in quotes, or correct it") from None
    if not isinstance(document, dict):
        raise UserError(f"{path}: a recipe is a mapping of keys to values")
    return document


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings in one; where both have a mapping under a key these are merged too, else the one above wins."""
    both = dict(below)
    for key, value in above.items():
        under = both.get(key)
        both[key] = merged(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return both


def _read_extended(path: Path, above: Sequence[Path]) -> dict[str, Any]:
    """The document of a recipe file with what it extends. `above` are the files that lead here."""
    if path.resolve() in above:
        raise UserError(f"{above[-1]}: extends: {path} extends this file in turn; break the circle")
    document = _read_yaml(path)
    below = document.pop("extends", None)
    if below is None:
        return document
    if not isinstance(below, str) or not below or "\0" in below:
        raise UserError(f"{path}: extends: the path of another recipe is needed (found {below!r})")
    return merged(_read_extended(path.parent / below, [*above, path.resolve()]), document)


def _override(document: dict[str, Any], word: str) -> str | None:
    """Set `key.path=value` in the document. Returns a fault, or None."""
    path, separator, text = word.partition("=")
    if not separator or not path:
        return f"{word}: an override has the form key.path=value"
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return f"{word}: the value is not valid YAML; quote it"
    *parents, last = path.split(".")
    place = document
    for key in parents:
        inner = place.get(key)
        if isinstance(inner, str):
            inner = {_NAMED_BY.get(key, "spec"): inner}
        if not isinstance(inner, dict):
            inner = {}
        place[key] = inner
        place = inner
    place[last] = value
    return None


def _lines(recipe: type[BaseModel], source: str, fault: Any) -> list[str]:
    """The lines for one fault that pydantic found; one, unless a validator of ours says more."""
    place, around = _place(recipe, fault["loc"])
    if fault["type"] == "extra_forbidden":
        key = str(fault["loc"][-1])
        near = get_close_matches(key, around, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(around)}"
        return [f"{source}: {place}: unknown key; {hint}"]
    if fault["type"] == "missing":
        return [f"{source}: {place}: is missing; give it in the recipe or as {place}=VALUE"]
    found = "" if isinstance(fault["input"], Mapping) else f" (found {fault['input']!r:.80})"
    where = f"{source}: {place}" if place else source
    return [f"{where}: {line}{found}" for line in fault["msg"].removeprefix("Value error, ").split("\n")]


def _place(recipe: type[BaseModel], location: Sequence[str | int]) -> tuple[str, list[str]]:
    """A fault's place as a user writes it, and the keys that are legal beside its last part.

    Pydantic also names the chosen member of a union, such as `rl` in `stages.teacher.rl.steps`, which is no key of the recipe.
    """
    here: Any = recipe
    shown: list[str] = []
    around: list[str] = []
    for part in map(str, location):
        around = _keys(here)
        here, is_key = _descend(here, part)
        if is_key and part != "[key]":
            shown.append(part)
    return ".".join(shown), around


def _descend(annotation: Any, part: str) -> tuple[Any, bool]:
    """What stands under one part of a location (None if unknown), and whether it is a key, not a union's member."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _descend(inner[0], part)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(part)
        return (field.annotation if field else None), True
    if origin is dict:
        return inner[1], True
    if origin in (tuple, list):
        return inner[0], True
    for member in inner:
        if _is_called(member, part):
            return member, False
    descended = (_descend(member, part) for member in inner)
    return next((found for found in descended if found[0] is not None), (None, True))


def _is_called(member: Any, tag: str) -> bool:
    """Whether a class of a recipe is the member of a union that a tag chooses."""
    if get_origin(member) is Annotated and Tag(tag) in get_args(member)[1:]:
        return True
    is_class = isinstance(member, type) and issubclass(member, BaseModel)
    return is_class and any(
        get_origin(field.annotation) is Literal and get_args(field.annotation) == (tag,)
        for field in member.model_fields.values()
    )


def _keys(annotation: Any) -> list[str]:
    """The keys that are legal under an annotation; none if any are, as in a mapping from names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return list(annotation.model_fields)
    if get_origin(annotation) in (dict, tuple, list, Literal):
        return []
    return [key for part in get_args(annotation) for key in _keys(part)]
