"""From a run directory to what its episodes cost and were worth, one episode in memory at a time."""

from __future__ import annotations

from pathlib import Path

from searchparty.costs.prices import Prices, check_prices, load_prices
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.evaluation.costs.by_workflow import Costed, costed
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.scoring import ScoredEpisode, score_episode


def read_costs(path: Path, prices_file: Path | None) -> tuple[list[tuple[Costed, ScoredEpisode]], Prices | None]:
    """Each episode of a run, and the prices that were used: those of the file, else of the run's own recipe, else none.

    Raises UserError if nothing was recorded, or if the prices leave out a model that was used.
    """
    directory = RunDirectory(path)
    recipe = directory.read_recipe()
    prices_file = prices_file or recipe.prices
    prices = None if prices_file is None else load_prices(prices_file)
    golden = {question.key: question.golden_answers for question in directory.read_questions()}
    scorer = scorer_named(recipe.scorer)
    models: set[str] = set()

    def read(episode: Episode) -> tuple[Costed, ScoredEpisode]:
        models.update(transcript.model for transcript in episode.agents)
        return costed(episode, prices), score_episode(episode, golden[episode.question_key], scorer)

    pairs = list(directory.latest(read).values())
    if not pairs:
        raise UserError(f"{path}: no episode was recorded yet; run or resume it first")
    if prices is not None and prices_file is not None:
        check_prices(prices, sorted(models), prices_file)
    return pairs, prices
