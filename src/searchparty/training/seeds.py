"""One recipe with several seeds: a run each, and a report over all of them.

An interval over questions says how sure a number is for one trained model; only other seeds say what training again would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from searchparty.errors import UserError
from searchparty.files import atomic_output, write_json
from searchparty.training.listening import TrainListener
from searchparty.training.recipe import TrainRecipe
from searchparty.training.report import Compared, read_report
from searchparty.training.run import train
from searchparty.training.run_directory import SEED, TrainDirectory


async def train_seeds(
    recipe: TrainRecipe,
    directory: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    jobs: int = 1,
    listener: TrainListener | None = None,
) -> list[TrainDirectory]:
    """Carry out a recipe once for each of its `seeds`, in `seed-N` below the directory; without seeds, once in the directory.

    With `resume`, finished seeds are passed over and the others begun or continued. `jobs` is as for `train`, and it
    raises as that does.
    """
    if not recipe.seeds:
        return [await train(recipe, directory, resume=resume, overwrite=overwrite, jobs=jobs, listener=listener)]
    places = run_places(recipe, directory)
    begun = [TrainDirectory(place).is_run for place, _ in places]
    if any(begun) and not (resume or overwrite):
        raise UserError(f"{directory}: already exists; add --resume to continue it or --overwrite to begin again")
    if resume and not any(begun):
        raise UserError(f"{directory}: nothing to resume here; leave out --resume to begin a run")
    runs = []
    for (place, own), is_run in zip(places, begun, strict=True):
        runs.append(await train(own, place, resume=resume and is_run, overwrite=overwrite, jobs=jobs, listener=listener))
    reports = [read_report(run) for run in runs]
    if reports[0]:
        write_json(directory / "report.json", over_seeds(reports))
        with atomic_output(directory / "report.md") as stream:
            stream.write(as_markdown(reports))
    return runs


def run_places(recipe: TrainRecipe, directory: Path) -> list[tuple[Path, TrainRecipe]]:
    """The directory of each run that a recipe stands for, and the recipe of that run alone."""
    if not recipe.seeds:
        return [(directory, recipe)]
    return [(directory / f"{SEED}{seed}", recipe.model_copy(update={"seed": seed, "seeds": ()})) for seed in recipe.seeds]


def over_seeds(reports: Sequence[Sequence[Compared]]) -> list[dict[str, object]]:
    """Per evaluation the values of every seed, their mean and their standard deviation (n − 1)."""
    table = []
    for rows in zip(*reports, strict=True):
        values = [row.exact_match for row in rows]
        differences = [row.difference for row in rows if row.difference is not None]
        table.append(
            {
                "title": rows[0].title,
                "exact_match": values,
                "mean": float(np.mean(values)),
                "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else None,
                "baseline": rows[0].baseline,
                "differences": differences,
                "mean_difference": float(np.mean(differences)) if differences else None,
                "searches": [row.searches for row in rows],
                "no_search": [row.no_search for row in rows],
            }
        )
    return table


def as_markdown(reports: Sequence[Sequence[Compared]]) -> str:
    """The table over seeds."""
    k, seeds = reports[0][0].samples, len(reports)
    columns = ("system", f"EM avg@{k}, mean of {seeds} seeds", "deviation", "by seed", "searches", "difference by seed")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for rows in zip(*reports, strict=True):
        values = [100 * row.exact_match for row in rows]
        deviation = f"{np.std(values, ddof=1):.1f}" if len(values) > 1 else "–"
        differences = [f"{100 * row.difference:+.1f}" for row in rows if row.difference is not None]
        lines.append(
            f"| {rows[0].title} | {np.mean(values):.1f} | {deviation} | {', '.join(f'{value:.1f}' for value in values)} | "
            f"{np.mean([row.searches for row in rows]):.2f} | {', '.join(differences) or '–'} |"
        )
    return "\n".join(lines) + "\n"
