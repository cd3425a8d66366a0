"""The options that every command shares which sets up a team: a recipe file, overrides, and short forms of its main keys."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from searchparty.config.recipe import TeamRecipe

R = TypeVar("R", bound="TeamRecipe")


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """Declare RECIPE, overrides, and --team, --model, --index, --seed."""
    parser.add_argument(
        "recipe", nargs="*", metavar="RECIPE.yaml | key.path=value", help="a recipe file, and overrides of its keys"
    )
    parser.add_argument("--team", help="direct, rag, chained, hierarchical, planned, or path/to/file.py:ClassName")
    parser.add_argument(
        "--model", help="smollm2, a Hugging Face id, a folder, a GGUF file, http://host:port/v1, scripted:default"
    )
    parser.add_argument("--index", metavar="DIR", help="folder of an index, or address of a retriever")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the run (default 0)")


def recipe_from(options: argparse.Namespace, kind: type[R], **settings: Any) -> R:
    """The recipe of that kind which file, overrides and options give together. Raises UserError."""
    from searchparty.config.load import load_recipe, split_words

    path, overrides = split_words(options.recipe)
    settings |= {"team": options.team, "model": options.model, "index": options.index, "seed": options.seed}
    return load_recipe(kind, path, overrides, settings)
