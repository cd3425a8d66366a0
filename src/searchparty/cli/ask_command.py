"""`searchparty ask`: let a team answer one question while you watch."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from searchparty.cli.interruption import run_until_interrupted
from searchparty.cli.recipe_options import add_recipe_options, recipe_from

if TYPE_CHECKING:
    from rich.console import Console

    from searchparty.config.recipe import TeamRecipe
    from searchparty.episodes.types import Episode, Retrieval, Span, Transcript


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("question", help="the question, in quotes")
    add_recipe_options(parser)
    parser.add_argument("--prompts", action="store_true", help="print system messages and worked examples in full")


def run(options: argparse.Namespace) -> int:
    """Play one episode in view. Returns 1 if it ended without an answer."""
    from rich.text import Text

    from searchparty.cli.console import make_console
    from searchparty.config.recipe import TeamRecipe
    from searchparty.episodes.printable import printable
    from searchparty.episodes.types import StopReason
    from searchparty.errors import UserError
    from searchparty.evaluation.scoring import extract_answers

    if not options.question.strip():
        raise UserError("the question is empty; put it in quotes after ask")
    console = make_console()
    recipe = recipe_from(options, TeamRecipe)
    episode = run_until_interrupted(_ask(options.question, recipe, console, options.prompts))
    _say_cost(console, episode, recipe)
    if episode.stop_reason is StopReason.ANSWERED:
        answer = next(answer for answer, _ in extract_answers(episode) if answer is not None)
        console.print(Text.assemble(("answer  ", "bold"), printable(answer)))
        return 0
    console.print(
        Text(f"no answer: {episode.stop_reason}" + (f" ({printable(episode.detail)})" if episode.detail else ""), style="red")
    )
    return 1


async def _ask(text: str, recipe: TeamRecipe, console: Console, prompts: bool) -> Episode:
    from searchparty.evaluation.staging import set_stage
    from searchparty.questions.asked import asked_question
    from searchparty.teams.play import play

    stage = set_stage(recipe)
    try:
        question = asked_question(text, recipe.seed)
        listener = Narrator(console, prompts)
        return await play(stage.team, question, stage.cast, stage.retriever, seed=recipe.seed, listener=listener)
    finally:
        await stage.close()


def _say_cost(console: Console, episode: Episode, recipe: TeamRecipe) -> None:
    """What was planned, if anything was, and what the episode used."""
    from rich.text import Text

    from searchparty.costs.prices import load_prices
    from searchparty.costs.spending import spending_of, workflow_tree
    from searchparty.episodes.printable import printable

    for line in workflow_tree(episode):
        console.print(Text.assemble(("workflow ", "bold"), printable(line)))
    spent = spending_of(episode)
    for (role, model), tokens in spent.by_role.items():
        counts = (tokens.uncached_input, tokens.cached_input, tokens.output)
        new, cached, out = ("?" if count is None else str(count) for count in counts)
        console.print(
            Text(f"tokens   {role} ({printable(model.split(' ')[0])}): {new} in, {cached} in from a cache, {out} out")
        )
    money = ", no price: give prices=FILE for USD" if episode.planner_turns else ""
    if recipe.prices is not None:
        usd = spent.usd(load_prices(recipe.prices))
        money = f", {usd:.6f} USD" if usd is not None else ", USD unknown: a model does not say how many tokens it used"
    console.print(Text(f"used     {spent.searches} searches, {spent.turns} turns, {spent.seconds:.1f} s{money}"))


class Narrator:
    """Prints each span and search as it happens."""

    def __init__(self, console: Console, prompts: bool) -> None:
        self._console = console
        self._prompts = prompts

    def on_span(self, transcript: Transcript, span: Span) -> None:
        """Print whose span it is, then the span."""
        from rich.text import Text

        from searchparty.episodes.picture import draw_span

        self._console.print(Text(transcript.agent, style="bold magenta"), draw_span(span, prompts=self._prompts), sep="\n")

    def on_search(self, retrieval: Retrieval) -> None:
        """Print the query and what it found."""
        from searchparty.episodes.picture import draw_search

        self._console.print(draw_search(retrieval))
