"""One stage of a run: what is written before and after its work, and that work itself where it is an evaluation.

Knows nothing of learning, so that a process that only evaluates starts quickly.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from searchparty.errors import UserError
from searchparty.evaluation.run import evaluate
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.files import write_json
from searchparty.training.listening import TrainListener
from searchparty.training.order import derived_seed
from searchparty.training.playing import eval_recipe
from searchparty.training.recipe import EvalStage, RLStage, StageSpec, TrainRecipe
from searchparty.training.references import resolve_references
from searchparty.training.run_directory import TrainDirectory

Work = Callable[[StageSpec, int], Awaitable[dict[str, Any]]]
"""Does what a stage, its references resolved, and its seed say. Returns what its result has to tell."""


async def carry_out_stage(run: TrainDirectory, recipe: TrainRecipe, name: str, made: Mapping[str, Path], work: Work) -> None:
    """Begin or continue a stage, and write its result.

    Args:
        made: earlier stages and the models that they made.

    Raises:
        UserError: as the work does, each line with the stage's name.
    """
    place = run.stage(name)
    try:
        spec = resolve_references(recipe.stages[name], made)
        write_json(place.description, describe_stage(name, spec))
        result = await work(spec, derived_seed(recipe.seed, name))
    except UserError as error:
        raise UserError(*[f"stages.{name}: {line}" for line in error.lines]) from error
    number = list(recipe.stages).index(name) + 1
    write_json(place.result, {"format": 1, "number": number, "kind": spec.kind, **result})


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


async def evaluate_stage(run: TrainDirectory, name: str, spec: EvalStage, seed: int, listener: TrainListener) -> None:
    """Carry out an evaluation, or go on with one that was interrupted."""
    recipe = eval_recipe(spec, seed if spec.seed is None else spec.seed)
    listener.on_stage(name, "eval", 1, 0)
    place = run.evaluation(name)
    await evaluate(
        recipe,
        place,
        resume=RunDirectory(place).is_run,
        on_episode=lambda _, done, total: listener.on_work("evaluation", done, total),
    )
