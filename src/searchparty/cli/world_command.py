"""`searchparty world make`: write a generated world into a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

_OPTIONS = (
    ("--seed", "seed", int, "another seed, another world (0)"),
    ("--questions", "train", int, "questions to train on (2000)"),
    ("--dev", "dev", int, "questions of the development split (200)"),
    ("--test", "test", int, "questions of the test split (400)"),
    ("--entities", "entities", int, "things that questions are about (600)"),
    ("--max-searches", "max_searches", int, "most searches one after another that a question may need (3)"),
    ("--paraphrases", "paraphrases", int, "wordings per relation, 1 to 3 (3)"),
    ("--facts-per-passage", "facts_per_passage", int, "most facts of one passage, 1 to 4 (2)"),
    ("--comparisons", "comparisons", float, "share of comparisons among questions of 2 and 4 hops (0.3)"),
    ("--distractors", "distractors", float, "passages beside the point, per fact (0.5)"),
    ("--ambiguity", "ambiguity", float, "share of ambiguous names (0.25)"),
)
"""Flag, field of WorldParameters, type, help. An option that is not given is left to the default of its field."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    make = actions.add_parser(
        "make", help="make a world", description="Make a world of questions and passages. Equal options make equal files."
    )
    make.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the world")
    for flag, field, kind, summary in _OPTIONS:
        metavar = "N" if kind is int else "X"
        make.add_argument(flag, dest=field, type=kind, metavar=metavar, default=argparse.SUPPRESS, help=summary)
    make.add_argument(
        "--hops",
        type=_weights,
        metavar="W,W,W,W",
        default=argparse.SUPPRESS,
        help="weights of questions of 1, 2, 3 and 4 hops (3,4,2,1)",
    )
    make.add_argument("--overwrite", action="store_true", help="replace the world that is in DIR")


def run(args: argparse.Namespace) -> int:
    """Make the world and say what is in it."""
    import dataclasses

    from searchparty.world import WorldParameters, make_world, write_world
    from searchparty.world.storing import CORPUS_FILE, check_target

    names = {field.name for field in dataclasses.fields(WorldParameters)}
    parameters = WorldParameters(**{name: value for name, value in vars(args).items() if name in names})
    check_target(args.output, args.overwrite)
    world = make_world(parameters)
    write_world(world, args.output, overwrite=args.overwrite)
    sizes = ", ".join(f"{len(questions):,} {split}" for split, questions in world.questions.items())
    print(f"{args.output}: {len(world.entities):,} entities, {len(world.passages):,} passages, questions: {sizes}")
    print(f"next: searchparty index build {args.output / CORPUS_FILE} -o {args.output / 'index'}")
    return 0


def _weights(words: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in words.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"four numbers with commas are needed, such as 3,4,2,1, not {words!r}") from None
