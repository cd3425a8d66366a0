"""The program of a process that carries out one evaluation of a run for the main process (`training.beside`).

    python -m searchparty.training.evaluating < PIPE

The pipe brings one line: run directory, recipe, stage, models that earlier stages made, threads. It then stays open as long as
the main process lives; when it closes, this process ends at once. Faults of the input are printed as a JSON list, exit code 2.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any


def main() -> int:
    """Read what to do, do it, and return the exit code."""
    with open(0, "rb", buffering=0, closefd=False) as pipe:  # unbuffered: the pipe is read again by the thread
        line = pipe.readline()
    threading.Thread(target=_end_with_the_main_process, daemon=True).start()
    return _carry_out(json.loads(line)) if line.endswith(b"\n") else 1


def _end_with_the_main_process() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)


def _carry_out(task: dict[str, Any]) -> int:
    import torch  # what takes seconds comes after the thread, so that the process never outlives the main one
    import yaml

    from searchparty.config.load import parse_recipe
    from searchparty.errors import ServiceFailure, UserError
    from searchparty.training.listening import SilentTrainListener
    from searchparty.training.one_stage import carry_out_stage, evaluate_stage
    from searchparty.training.recipe import EvalStage, StageSpec, TrainRecipe
    from searchparty.training.run_directory import TrainDirectory

    torch.set_num_threads(task["threads"])
    run, name = TrainDirectory(Path(task["run"])), task["stage"]
    made = {stage: Path(model) for stage, model in task["made"].items()}

    async def work(spec: StageSpec, seed: int) -> dict[str, Any]:
        assert isinstance(spec, EvalStage)
        await evaluate_stage(run, name, spec, seed, SilentTrainListener())
        return {}

    try:
        recipe = parse_recipe(TrainRecipe, yaml.safe_load(task["recipe"]), str(run.recipe_file))
        asyncio.run(carry_out_stage(run, recipe, name, made, work))
    except UserError as error:
        print(json.dumps(list(error.lines)))
        return 2
    except (ServiceFailure, OSError) as error:
        print(json.dumps([str(error)]))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
