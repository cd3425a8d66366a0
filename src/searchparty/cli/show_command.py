"""`searchparty show`: read what every agent of a run saw and wrote."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from searchparty.config.recipe import EvalRecipe
    from searchparty.episodes.picture import DecodeToken
    from searchparty.episodes.types import Episode
    from searchparty.training.records import StepFiles

EpisodeId = tuple[str, int]
"""Question key and sample."""
Row = tuple[str, str, int, str | None]
"""Question, stop reason, searches, answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "run_directory", type=Path, metavar="RUN", help="an evaluation, or with --stage and --step a training run"
    )
    parser.add_argument("--stage", metavar="NAME", help="of a training run: the stage (needed if several were recorded)")
    parser.add_argument("--step", type=int, metavar="N", help="of a training run: the step")
    parser.add_argument("--question", metavar="ID", help="the episodes of this question (id, or dataset/id)")
    parser.add_argument("--episode", type=int, metavar="N", help="the N-th episode of the run, or of the question")
    parser.add_argument("--tokens", action="store_true", help="list every token: id, text, log-probability")
    parser.add_argument("--prompts", action="store_true", help="print system messages and worked examples in full")
    parser.add_argument("--limit", type=int, default=40, metavar="N", help="length of the list (default 40)")


def run(options: argparse.Namespace) -> int:
    """List the episodes, or draw those that were asked for."""
    from searchparty.cli.console import make_console
    from searchparty.episodes.picture import draw_episode
    from searchparty.errors import UserError
    from searchparty.evaluation.run_directory import RunDirectory
    from searchparty.training.run_directory import TrainDirectory

    if TrainDirectory(options.run_directory).is_run:
        return _show_step(options)
    if options.stage is not None or options.step is not None:
        raise UserError(f"{options.run_directory}: is no training run; leave out --stage and --step")
    directory = RunDirectory(options.run_directory)
    recipe = directory.read_recipe()
    rows = directory.latest(_row)
    if not rows:
        raise UserError(f"{options.run_directory}: no episode has ended yet; continue the run with --resume")
    console = make_console()
    chosen = _choose(list(rows), options)
    if chosen is None:
        golds = {question.key: question.golden_answers for question in directory.read_questions()}
        console.print(_table(rows, golds, options.limit))
        if len(rows) > options.limit:
            console.print(f"{len(rows) - options.limit} more: --limit {len(rows)}")
        console.print(f"read one: searchparty show {directory.path} --episode 1")
        return 0
    decode = _decoders(recipe, set(recipe.roles)) if options.tokens else None
    wanted = directory.latest(lambda episode: episode if (episode.question_key, episode.sample) in chosen else None)
    for key in chosen:
        episode = wanted[key]
        assert episode is not None
        console.print(draw_episode(episode, prompts=options.prompts, tokens=options.tokens, decode=decode))
    return 0


def _show_step(options: argparse.Namespace) -> int:
    """List or draw what a training step sampled. Token texts are not looked up: the policy's tokenizer may be a stage's."""
    from searchparty.cli.console import make_console
    from searchparty.episodes.picture import draw_episode
    from searchparty.episodes.store import read_episodes
    from searchparty.training.records import read_facts

    files = _step_files(options)
    episodes = {(episode.question_key, episode.sample): episode for episode in read_episodes(files.episodes)}
    console = make_console()
    chosen = _choose(list(episodes), options)
    if chosen is None:
        golds = read_facts(files.facts)["golden_answers"]
        console.print(_table({key: _row(episode) for key, episode in episodes.items()}, golds, options.limit))
        return 0
    for key in chosen:
        console.print(draw_episode(episodes[key], prompts=options.prompts, tokens=options.tokens))
    return 0


def _step_files(options: argparse.Namespace) -> StepFiles:
    """The files of the step that the options name. Raises UserError with what there is."""
    from searchparty.errors import UserError
    from searchparty.training.records import StepFiles, recorded_steps
    from searchparty.training.run_directory import TrainDirectory

    directory = TrainDirectory(options.run_directory)
    steps = {name: recorded_steps(directory.stage(name).episodes) for name in directory.read_recipe().stages}
    steps = {name: numbers for name, numbers in steps.items() if numbers}
    there = ", ".join(f"{name} (steps {numbers[0]} to {numbers[-1]})" for name, numbers in steps.items()) or "none"
    stage = options.stage or (next(iter(steps)) if len(steps) == 1 else None)
    if stage not in steps:
        what = "give --stage" if stage is None else f"no episodes of a stage {stage}"
        raise UserError(f"{directory.path}: {what}; recorded stages: {there}; evaluations: {directory.path / 'evaluations'}")
    if options.step not in steps[stage]:
        what = "give --step" if options.step is None else f"step {options.step} of {stage} was not recorded"
        raise UserError(f"{directory.path}: {what}; recorded: {', '.join(map(str, steps[stage]))}")
    return StepFiles(directory.stage(stage).episodes, options.step)


def _row(episode: Episode) -> Row:
    from searchparty.evaluation.scoring import extract_answers

    answers = extract_answers(episode)
    return episode.question, episode.stop_reason.value, len(episode.retrievals), answers[0][0] if answers else None


def _choose(keys: list[EpisodeId], options: argparse.Namespace) -> list[EpisodeId] | None:
    """The episodes that the options name; None for the list of all."""
    from searchparty.errors import UserError

    of = "the run"
    if options.question is not None:
        wanted, of = options.question, f"question {options.question}"
        keys = [key for key in keys if key[0] == wanted or key[0].endswith(f"/{wanted}")]
        if not keys:
            raise UserError(
                f"--question {wanted}: the run has none of that id; list all: searchparty show {options.run_directory}"
            )
    if options.episode is not None:
        if not 1 <= options.episode <= len(keys):
            raise UserError(f"--episode {options.episode}: {of} has the episodes 1 to {len(keys)}")
        return [keys[options.episode - 1]]
    return keys if options.question is not None or len(keys) == 1 else None


def _table(rows: dict[EpisodeId, Row], golds: Mapping[str, Sequence[str]], limit: int) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    from searchparty.episodes.printable import printable

    table = Table(
        title=f"{len(rows)} episodes", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False, expand=True
    )
    columns = (("", 1), ("question", 9), ("ended", 4), ("searches", 2), ("answer", 4), ("golden answer", 4))
    for name, ratio in columns:
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio)
    for number, ((key, _), (question, ended, searches, answer)) in enumerate(list(rows.items())[:limit], start=1):
        cells = [str(number), question, ended, str(searches), answer or "–", " | ".join(golds.get(key, ())[:2])]
        table.add_row(*[Text(printable(cell)) for cell in cells])
    return table


def _decoders(recipe: EvalRecipe, roles: set[str]) -> DecodeToken:
    """Token texts by role, as far as the tokenizers can be loaded; an empty text for the rest."""
    from searchparty.errors import UserError
    from searchparty.models.loading import load_tokenizer
    from searchparty.models.types import Tokenizer

    def load(role: str | None) -> Tokenizer | None:
        own = recipe.roles[role].model if role is not None else None
        spec = own or recipe.model
        try:
            return load_tokenizer(spec.spec, spec.tokenizer)
        except UserError:
            return None

    default = load(None)
    by_role = {role: load(role) if recipe.roles[role].model else default for role in roles}

    def decode(role: str, token: int) -> str:
        tokenizer = by_role.get(role, default)
        return tokenizer.decode([token]) if tokenizer is not None else ""

    return decode
