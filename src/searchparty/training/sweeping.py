"""One recipe with several values of one key: a run each, and a comparison over all of them.

Stages that come before the first one that the key changes are carried out once, by the first run; the others begin with copies
of what they made, which on one machine is what they would have made themselves.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from searchparty.config.load import load_recipe
from searchparty.errors import UserError
from searchparty.files import write_json
from searchparty.training.checking import check_recipe
from searchparty.training.listening import TrainListener
from searchparty.training.recipe import TrainRecipe
from searchparty.training.run import describe_environment
from searchparty.training.run_directory import MetricsLog, TrainDirectory
from searchparty.training.seeds import run_places, train_seeds
from searchparty.training.sweep_report import Point, measure_run, write_sweep

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Variation:
    """Which key of a recipe takes which values."""

    key: str
    """Its path, with points."""
    values: tuple[Value, ...]

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition(".")[2]

    def folder(self, value: Value) -> str:
        """The name of a value's directory."""
        return f"{self.name}-{re.sub(r'[^A-Za-z0-9._+-]', '_', str(value))}"


def read_variation(text: str) -> Variation:
    """The variation that `key.path=value,value,...` describes. Raises UserError for any other text."""
    key, separator, listed = text.partition("=")
    try:
        values = yaml.safe_load(f"[{listed}]")
    except yaml.YAMLError:
        values = None
    if not separator or not key or not isinstance(values, list):
        raise UserError(f"--vary {text}: has the form key.path=value,value,...")
    if odd := [value for value in values if isinstance(value, (list, dict))]:
        raise UserError(f"--vary {text}: {odd[0]!r} is no single value; vary a number, a word or a truth value")
    variation = Variation(key, tuple(values))
    folders = [variation.folder(value) for value in values]
    if len(folders) < 2 or len(set(folders)) < len(folders):
        raise UserError(f"--vary {text}: at least two values are needed, and each once")
    return variation


def varied_recipes(path: Path | None, overrides: Sequence[str], variation: Variation) -> list[TrainRecipe]:
    """The recipe with each of the values, all checked. Raises UserError naming the value with every fault."""
    recipes, faults = [], []
    for value in variation.values:
        word = f"{variation.key}={json.dumps(value)}"
        try:
            recipe = load_recipe(TrainRecipe, path, [*overrides, word], {})
            check_recipe(recipe)
        except UserError as error:
            faults += [f"{variation.name} {value}: {line}" for line in error.lines]
            continue
        recipes.append(recipe)
    if faults:
        raise UserError(*faults)
    return recipes


async def sweep(
    variation: Variation,
    recipes: Sequence[TrainRecipe],
    directory: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    listener: TrainListener | None = None,
) -> list[Point]:
    """Carry out the recipes, one for each value, in directories of their own, and compare their evaluations.

    With `resume`, finished runs are passed over and the others begun or continued; values may be added then. Raises as `train`
    does.
    """
    places = [directory / variation.folder(value) for value in variation.values]
    begun = [_is_begun(recipe, place) for place, recipe in zip(places, recipes, strict=True)]
    if any(begun) and not (resume or overwrite):
        raise UserError(f"{directory}: already exists; add --resume to continue it or --overwrite to begin again")
    if resume and not any(begun):
        raise UserError(f"{directory}: nothing to resume here; leave out --resume to begin a sweep")
    write_json(directory / "sweep.json", {"format": 1, "key": variation.key, "values": list(variation.values)})
    points: list[Point] = []
    first: list[TrainDirectory] = []
    for value, recipe, place, is_begun in zip(variation.values, recipes, places, begun, strict=True):
        if not first:
            runs = first = await train_seeds(recipe, place, resume=resume and is_begun, overwrite=overwrite, listener=listener)
        else:
            for source, (path, own) in zip(first, run_places(recipe, place), strict=True):
                if overwrite or not TrainDirectory(path).is_run:
                    adopt_stages(source, TrainDirectory(path), own, overwrite=overwrite)
            runs = await train_seeds(recipe, place, resume=True, listener=listener)
        points += [point for run in runs for point in measure_run(run, run.read_recipe(), value)]
        write_sweep(directory, variation.name, points)
    return points


def adopt_stages(source: TrainDirectory, run: TrainDirectory, recipe: TrainRecipe, *, overwrite: bool = False) -> list[str]:
    """Begin a run with the finished stages of another, up to the first that differs. Returns their names."""
    run.check_may_begin(resume=False, overwrite=overwrite)
    theirs = source.read_recipe()
    shared = []
    for (name, ours), (other, spec) in zip(recipe.stages.items(), theirs.stages.items(), strict=False):
        if name != other or ours != spec or recipe.seed != theirs.seed or not source.stage(name).result.is_file():
            break
        shared.append(name)
    with run.locked():
        run.begin(recipe, describe_environment(recipe))
        log = MetricsLog(run.metrics_file)
        for line in MetricsLog(source.metrics_file).lines():
            if line["stage"] in shared:
                log.append(line)
        for name in shared:
            if source.evaluation(name).is_dir():
                _copy(source.evaluation(name), run.evaluation(name))
            _copy(source.stage(name).path, run.stage(name).path)
    return shared


def _copy(folder: Path, to: Path) -> None:
    """A copy that is there whole or not at all."""
    to.parent.mkdir(parents=True, exist_ok=True)
    half = to.with_name(f".{to.name}.new")
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(folder, half)
    half.replace(to)


def _is_begun(recipe: TrainRecipe, place: Path) -> bool:
    return any(TrainDirectory(path).is_run for path, _ in run_places(recipe, place))
