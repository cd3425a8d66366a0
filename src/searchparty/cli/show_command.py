"""`searchparty show`: read what every agent of a run saw and wrote."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from searchparty.config.recipe import EvalRecipe
    from searchparty.episodes.types import Episode
    from searchparty.evaluation.run_directory import RunDirectory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run_directory", type=Path, metavar="RUN")
    parser.add_argument("--question", metavar="ID", help="the episodes of this question (id, or dataset/id)")
    parser.add_argument("--episode", type=int, metavar="N", help="the N-th episode of the list")
    parser.add_argument("--tokens", action="store_true", help="list every token: id, text, log-probability")
    parser.add_argument("--prompts", action="store_true", help="print system messages and worked examples in full")
    parser.add_argument("--limit", type=int, default=40, metavar="N", help="length of the list (default 40)")


def run(options: argparse.Namespace) -> int:
    """List the episodes, or draw those that were asked for."""
    from searchparty.cli.console import make_console
    from searchparty.episodes.picture import draw_episode
    from searchparty.errors import UserError
    from searchparty.evaluation.run_directory import RunDirectory

    directory = RunDirectory(options.run_directory)
    recipe = directory.read_recipe()
    episodes = list(directory.read_latest_episodes().values())
    if not episodes:
        raise UserError(f"{options.run_directory}: no episode has ended yet; continue the run with --resume")
    console = make_console()
    chosen = _choose(episodes, options)
    if chosen is None:
        _list(episodes, directory, options.limit, console)
        return 0
    decode = _decoder(recipe) if options.tokens else None
    for episode in chosen:
        console.print(draw_episode(episode, prompts=options.prompts, tokens=options.tokens, decode=decode))
    return 0


def _choose(episodes: list[Episode], options: argparse.Namespace) -> list[Episode] | None:
    from searchparty.errors import UserError

    if options.episode is not None:
        if not 1 <= options.episode <= len(episodes):
            raise UserError(f"--episode {options.episode}: the run has the episodes 1 to {len(episodes)}")
        return [episodes[options.episode - 1]]
    if options.question is not None:
        wanted = options.question
        found = [episode for episode in episodes if wanted in (episode.question_key, episode.question_key.partition("/")[2])]
        if not found:
            raise UserError(
                f"--question {wanted}: the run has no such question; list them with: searchparty show {options.run_directory}"
            )
        return found
    return episodes if len(episodes) == 1 else None


def _list(episodes: list[Episode], directory: RunDirectory, limit: int, console: Console) -> None:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    from searchparty.episodes.printable import printable
    from searchparty.evaluation.scoring import extract_answers

    golds = {question.key: question.golden_answers for question in directory.read_questions()}
    table = Table(
        title=f"{len(episodes)} episodes", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False, expand=True
    )
    for name, ratio in (("", 1), ("question", 9), ("ended", 4), ("searches", 2), ("answer", 4), ("golden answer", 4)):
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio)
    for number, episode in enumerate(episodes[:limit], start=1):
        answers = extract_answers(episode)
        answer = answers[0][0] if answers else None
        golden = " | ".join(golds.get(episode.question_key, ())[:2])
        searches = str(len(episode.retrievals))
        cells = [str(number), episode.question, episode.stop_reason.value, searches, answer or "–", golden]
        table.add_row(*[Text(printable(cell)) for cell in cells])
    console.print(table)
    if len(episodes) > limit:
        console.print(f"{len(episodes) - limit} more: --limit {len(episodes)}")
    console.print(f"read one: searchparty show {directory.path} --episode 1")


def _decoder(recipe: EvalRecipe) -> Callable[[int], str] | None:
    from searchparty.errors import UserError
    from searchparty.models.loading import load_tokenizer

    try:
        tokenizer = load_tokenizer(recipe.model.spec, recipe.model.tokenizer)
    except UserError:
        return None
    return (lambda token: tokenizer.decode([token])) if tokenizer else None
