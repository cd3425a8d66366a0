"""A training run: the stages of a recipe in their order, each once, from wherever an earlier process left off."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from searchparty.evaluation.run_folder import describe_machine
from searchparty.files import read_json
from searchparty.training.beside import EvaluationsBeside, shared_threads
from searchparty.training.imitation import imitate
from searchparty.training.inputs import describe_inputs
from searchparty.training.listening import SilentTrainListener, TrainListener
from searchparty.training.one_stage import Work, carry_out_stage, evaluate_stage
from searchparty.training.recipe import EvalStage, RLStage, StageSpec, TrainRecipe
from searchparty.training.references import dependent_stages
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
    jobs: int = 1,
    listener: TrainListener | None = None,
) -> TrainDirectory:
    """Carry out a recipe in a run directory.

    Args:
        resume: continue the run that is there; finished stages are not repeated.
        overwrite: delete the run that is there and begin again.
        jobs: stages at once: this process has one, and up to `jobs - 1` evaluations whose models are made go on in processes of
            their own (`training.beside`, which says what an error ends). They share the threads, so that numbers are equal but
            for the rounding of another number of threads.

    Raises:
        UserError: for anything in the recipe or the directory that does not fit.
        TrainingStopped: an alarm, or numbers that are no longer finite; the state up to then is kept.
    """
    hears = listener or SilentTrainListener()
    run = TrainDirectory(directory)
    run.check_may_begin(resume=resume, overwrite=overwrite)
    environment = describe_environment(recipe)
    with run.locked() as lock:
        if resume:
            run.check_same(recipe, environment)
        else:
            run.begin(recipe, environment)
        metrics = MetricsLog(run.metrics_file)
        metrics.keep(lambda line: True)  # a torn last line goes
        with tracked(run.path, recipe, metrics, hears.on_message), shared_threads(jobs):
            made: dict[str, Path] = {}
            async with EvaluationsBeside(run, recipe, jobs - 1, lock, hears) as beside:
                for name in recipe.stages:
                    if beside.claim(name) and not run.stage(name).result.is_file():
                        await beside.check()
                        _forget(run, dependent_stages(recipe, name), metrics)
                        beside.offer(name, made)
                        await carry_out_stage(run, recipe, name, made, _work(run, name, metrics, hears))
                    result = run.stage(name).result
                    if result.is_file() and (model := read_json(result, _model_of_result)) is not None:
                        made[name] = run.path / str(model)
                await beside.finish()
        write_report(run, recipe)
        write_workflow_report(run, recipe)
    return run


def _model_of_result(value: Any) -> object:
    """The model that a finished stage made; None for an evaluation. Raises TypeError for what is no result."""
    if not isinstance(value, dict):
        raise TypeError(f"an object is needed, found {type(value).__name__}")
    return value.get("model")


def _forget(run: TrainDirectory, names: Collection[str], metrics: MetricsLog) -> None:
    """Remove what was built on a stage that is not finished, or no longer is."""
    for name in names:
        for folder in (run.stage(name).path, run.evaluation(name)):
            if folder.is_dir():
                shutil.rmtree(folder)
    metrics.keep(lambda line: line["stage"] not in names)


def _work(run: TrainDirectory, name: str, metrics: MetricsLog, listener: TrainListener) -> Work:
    """What is done in a stage of any kind."""

    async def work(spec: StageSpec, seed: int) -> dict[str, Any]:
        if isinstance(spec, RLStage):
            trainer = await open_rl(name, spec, seed, run.stage(name), metrics, listener)
            try:
                return await trainer.run()
            finally:
                await trainer.close()
        if isinstance(spec, EvalStage):
            await evaluate_stage(run, name, spec, seed, listener)
            return {}
        return await imitate(name, spec, seed, run.stage(name), metrics, listener)

    return work


def describe_environment(recipe: TrainRecipe) -> dict[str, Any]:
    """Versions, and the contents of what the recipe names: a resumed run must find the same."""
    return {
        **describe_machine(),
        "inputs": describe_inputs(recipe),
    }
