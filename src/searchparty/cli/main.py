"""The command `searchparty`: finds the module of a command, runs it, and turns every ending into one line and an exit code.

0 done, 1 something failed that is no user's mistake, 2 a mistake in the input, 130 interrupted. Command modules are imported
only when their command is named, so that `--help` stays quick.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from searchparty import __version__
from searchparty.errors import ServiceFailure, UserError

COMMANDS = {
    "eval": "run a team over questions and score it",
    "ask": "let a team answer one question while you watch",
    "serve": "serve a team over HTTP, for OpenAI clients and others",
    "train": "train a team by a recipe, stage by stage",
    "sweep": "train with several values of one key and compare quality and cost",
    "check": "check a training recipe without running it",
    "score": "score a finished run again, without sampling",
    "compare": "compare finished evaluations of the same questions",
    "costs": "what a finished evaluation cost, workflow by workflow",
    "diagnose": "where a run loses the evidence, how its roles behave, and when that changed",
    "judge": "ask a model whether answers are right, beside the score",
    "report": "write runs up as one page, with their tables and plots",
    "audit": "prove of a training run that every token was trained as its episodes say",
    "show": "read what every agent of a run saw and wrote",
    "questions": "convert, show and compare files of questions",
    "index": "build a search index over a corpus, or describe one",
    "search": "search an index",
    "retriever": "serve an index over HTTP, or describe recorded answers",
    "store": "fill Qdrant, OpenSearch or Elasticsearch from a corpus",
    "world": "make a generated closed world of questions and passages",
}
"""Each command lives in `searchparty.cli.<name>_command` with `add_arguments(parser)` and `run(args) -> int`."""


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The argument parser; only the module of `command` is imported."""
    parser = argparse.ArgumentParser(
        prog="searchparty", description="Train, evaluate and serve teams of search agents that answer questions over a corpus."
    )
    parser.add_argument("--version", action="version", version=f"searchparty {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, summary in COMMANDS.items():
        subparser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == command:
            module = importlib.import_module(f"searchparty.cli.{name}_command")
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def _run(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Parse and run. Recipe words may stand anywhere among the options, which argparse alone does not allow."""
    options, rest = parser.parse_known_args(arguments)
    if rest and (not hasattr(options, "recipe") or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.recipe = [*options.recipe, *rest]
    return int(options.run(options))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if word in COMMANDS), None)
    try:
        return _run(build_parser(command), arguments)
    except UserError as error:
        for line in error.lines:
            print(f"searchparty: error: {line}", file=sys.stderr)
        return 2
    except ServiceFailure as error:
        print(f"searchparty: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"searchparty: error: {error.filename or 'system'}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("searchparty: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
