"""A training run: the stages of a recipe in their order, each once, from wherever an earlier process left off."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from searchparty.errors import UserError
from searchparty.evaluation.run import evaluate
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.run_folder import describe_machine
from searchparty.files import read_json, write_json
from searchparty.training.imitation import imitate
from searchparty.training.inputs import describe_inputs
from searchparty.training.listening import SilentTrainListener, TrainListener
from searchparty.training.order import derived_seed
from searchparty.training.playing import eval_recipe
from searchparty.training.recipe import EvalStage, RLStage, StageSpec, TrainRecipe
from searchparty.training.references import resolve_references
from searchparty.training.report import write_report
from searchparty.training.rl import open_rl
from searchparty.training.run_directory import MetricsLog, TrainDirectory
from searchparty.training.trackers import tracked
from searchparty.training.workflow_report import write_workflow_report


async def train(
    recipe: TrainRecipe,
    directory: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    listener: TrainListener | None = None,
) -> TrainDirectory:
    """Carry out a recipe in a run directory.

    Args:
        resume: continue the run that is there; finished stages are not repeated.
        overwrite: delete the run that is there and begin again.

    Raises:
        UserError: for anything in the recipe or the directory that does not fit.
        TrainingStopped: an alarm, or numbers that are no longer finite; the state up to then is kept.
    """
    hears = listener or SilentTrainListener()
    run = TrainDirectory(directory)
    run.check_may_begin(resume=resume, overwrite=overwrite)
    environment = describe_environment(recipe)
    with run.locked():
        if resume:
            run.check_same(recipe, environment)
        else:
            run.begin(recipe, environment)
        metrics = MetricsLog(run.metrics_file)
        metrics.keep(lambda line: True)  # a torn last line goes
        with tracked(run.path, recipe, metrics, hears.on_message):
            made: dict[str, Path] = {}
            for number, (name, spec) in enumerate(recipe.stages.items(), start=1):
                place = run.stage(name)
                if not place.result.is_file():
                    _forget_later_stages(run, list(recipe.stages)[number:], metrics)
                    seed = derived_seed(recipe.seed, name)
                    resolved = resolve_references(spec, made)
                    try:
                        result = await _carry_out(run, name, resolved, seed, metrics, hears, resume)
                    except UserError as error:
                        raise UserError(*[f"stages.{name}: {line}" for line in error.lines]) from error
                    write_json(place.result, {"format": 1, "number": number, "kind": spec.kind, **result})
                model = read_json(place.result, _model_of_result)
                if model is not None:
                    made[name] = run.path / str(model)
        write_report(run, recipe)
        write_workflow_report(run, recipe)
    return run


def _model_of_result(value: Any) -> object:
    """The model that a finished stage made; None for an evaluation. Raises TypeError for what is no result."""
    if not isinstance(value, dict):
        raise TypeError(f"an object is needed, found {type(value).__name__}")
    return value.get("model")


def _forget_later_stages(run: TrainDirectory, names: Sequence[str], metrics: MetricsLog) -> None:
    """Remove what was built on a stage that is not finished, or no longer is."""
    for name in names:
        for folder in (run.stage(name).path, run.evaluation(name)):
            if folder.is_dir():
                shutil.rmtree(folder)
    metrics.keep(lambda line: line["stage"] not in names)


async def _carry_out(
    run: TrainDirectory,
    name: str,
    spec: StageSpec,
    seed: int,
    metrics: MetricsLog,
    listener: TrainListener,
    resume: bool,
) -> dict[str, Any]:
    place = run.stage(name)
    write_json(place.description, describe_stage(name, spec))
    if isinstance(spec, RLStage):
        trainer = await open_rl(name, spec, seed, place, metrics, listener)
        try:
            return await trainer.run()
        finally:
            await trainer.close()
    if isinstance(spec, EvalStage):
        await _evaluate(run, name, spec, seed if spec.seed is None else spec.seed, listener, resume)
        return {}
    return await imitate(name, spec, seed, place, metrics, listener)


async def _evaluate(run: TrainDirectory, name: str, spec: EvalStage, seed: int, listener: TrainListener, resume: bool) -> None:
    recipe = eval_recipe(spec, seed)
    listener.on_stage(name, "eval", 1, 0)
    place = run.evaluation(name)
    await evaluate(
        recipe,
        place,
        resume=resume and RunDirectory(place).is_run,
        overwrite=not resume,
        on_episode=lambda _, done, total: listener.on_work("evaluation", done, total),
    )


def describe_stage(name: str, spec: StageSpec) -> dict[str, Any]:
    """What the audit must know to compute a stage's credit again."""
    described: dict[str, Any] = {"format": 1, "name": name, "kind": spec.kind}
    if isinstance(spec, RLStage):
        described |= {
            "credit": spec.credit.model_dump(mode="json"),
            "scorer": spec.scorer,
            "teacher_temperature": 1.0,
            "samples": spec.samples,
        }
    return described


def describe_environment(recipe: TrainRecipe) -> dict[str, Any]:
    """Versions, and the contents of what the recipe names: a resumed run must find the same."""
    return {
        **describe_machine(),
        "inputs": describe_inputs(recipe),
    }
