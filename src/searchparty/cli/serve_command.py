"""`searchparty serve`: a team behind HTTP, for OpenAI's clients and in a native form."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from searchparty.cli.numbers import positive
from searchparty.cli.recipe_options import add_recipe_options, recipe_from
from searchparty.cli.serving_options import MEGABYTE, add_serving_options, required_token, warn_if_open

if TYPE_CHECKING:
    from searchparty.episodes.types import Episode

TOKEN_VARIABLE = "SEARCHPARTY_SERVE_TOKEN"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recipe_options(parser)
    add_serving_options(parser, port=8080, token_variable=TOKEN_VARIABLE, body_mb=1)
    parser.add_argument(
        "--concurrency", type=positive, default=32, metavar="N", help="episodes at work at once (default: %(default)s)"
    )
    parser.add_argument(
        "--waiting",
        type=positive,
        default=256,
        metavar="N",
        help="episodes accepted at once, those at work included; more are answered with 503 (default: %(default)s)",
    )
    parser.add_argument(
        "--time-limit",
        type=positive,
        default=300,
        metavar="SECONDS",
        help="for one question, waiting included; then it is answered with 504 (default: %(default)s)",
    )
    parser.add_argument("--record", type=Path, metavar="RUN", help="keep the episodes in this run directory")
    parser.add_argument("--resume", action="store_true", help="with --record: add to the record that is there")
    parser.add_argument("--overwrite", action="store_true", help="with --record: begin the record again")


def run(options: argparse.Namespace) -> int:
    """Serve until a signal comes; running questions are finished first."""
    from contextlib import ExitStack

    from searchparty.config.recipe import TeamRecipe
    from searchparty.costs.prices import load_prices
    from searchparty.errors import UserError
    from searchparty.evaluation.staging import set_stage
    from searchparty.http_server.listening import Server, allow_many_connections, bind
    from searchparty.serving.recording import recording
    from searchparty.serving.server import TeamServer
    from searchparty.serving.service import Limits

    if options.record is None and (options.resume or options.overwrite):
        raise UserError("--resume and --overwrite say what becomes of a record; give --record RUN, or remove them")
    token = required_token(options, TOKEN_VARIABLE)
    recipe = recipe_from(options, TeamRecipe)
    allow_many_connections()
    listener = bind(options.host, options.port)
    warn_if_open(options.host, token, "ask")
    stage = set_stage(recipe)
    limits = Limits(options.concurrency, options.waiting, options.time_limit, options.body_mb * MEGABYTE)
    prices = None if recipe.prices is None else load_prices(recipe.prices)
    with ExitStack() as stack:
        record: Callable[[Episode], None] = _forget
        if options.record is not None:
            kept = recording(options.record, recipe, stage, resume=options.resume, overwrite=options.overwrite)
            record = stack.enter_context(kept)
        application = TeamServer(stage, recipe.seed, limits=limits, token=token, prices=prices, record=record)
        Server(application, listener, lambda address: _announce(stage.team.name, address), options.time_limit).run_on_socket()
    return 0


def _forget(episode: Episode) -> None:
    """Keep nothing of an episode."""


def _announce(team: str, address: str) -> None:
    print(f"serving the team {team} at {address}/v1 and {address}/ask (stop with Ctrl-C)", flush=True)
