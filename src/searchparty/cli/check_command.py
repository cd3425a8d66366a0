"""`searchparty check`: a dry run of a training recipe."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "recipe", nargs="+", metavar="RECIPE.yaml | key.path=value", help="a training recipe, and overrides of its keys"
    )


def run(options: argparse.Namespace) -> int:
    """Print the resolved recipe if nothing is wrong with it; every fault at once otherwise."""
    from searchparty.config.load import dump_recipe, load_recipe, split_words
    from searchparty.training.checking import check_recipe
    from searchparty.training.recipe import TrainRecipe

    path, overrides = split_words(options.recipe)
    recipe = load_recipe(TrainRecipe, path, overrides, {})
    check_recipe(recipe)
    print(dump_recipe(recipe), end="")
    return 0
