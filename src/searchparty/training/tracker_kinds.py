"""The experiment trackers that a recipe may name, each behind the three methods of `trackers.Tracker`.

A package is imported when its tracker begins. Steps are those of a stage, so every stage has a course of its own.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from searchparty.files import atomic_output
from searchparty.training.trackers import Tracker, scalars


class TensorBoard:
    """Event files under `trackers/tensorboard`; see them with `tensorboard --logdir RUN/trackers/tensorboard`."""

    def begin(self, run_dir: Path, recipe: Mapping[str, Any]) -> None:
        """See `Tracker.begin`."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(log_dir=str(run_dir / "trackers" / "tensorboard"))
        self._writer.add_text("recipe", f"```json\n{json.dumps(recipe, indent=2)}\n```", 0)

    def log(self, line: Mapping[str, Any]) -> None:
        """See `Tracker.log`."""
        for name, value in scalars(line).items():
            self._writer.add_scalar(name, value, line["step"])
        self._writer.flush()

    def close(self) -> None:
        """See `Tracker.close`."""
        self._writer.close()


class Wandb:
    """A run of the project that is named like the recipe; `WANDB_API_KEY`, `WANDB_MODE` and `WANDB_ENTITY` apply."""

    def begin(self, run_dir: Path, recipe: Mapping[str, Any]) -> None:
        """See `Tracker.begin`."""
        import wandb

        self._run: Any = wandb.init(
            project=recipe["name"],
            name=run_dir.name,
            id=own_id(run_dir),
            resume="allow",
            dir=str(run_dir / "trackers"),
            config=dict(recipe),
        )
        for stage in recipe["stages"]:
            self._run.define_metric(f"{stage}/step")
            self._run.define_metric(f"{stage}/*", step_metric=f"{stage}/step")

    def log(self, line: Mapping[str, Any]) -> None:
        """See `Tracker.log`. Its own step counts calls; the stage's is a metric beside the others."""
        self._run.log({**scalars(line), f"{line['stage']}/step": line["step"]})

    def close(self) -> None:
        """See `Tracker.close`."""
        self._run.finish()


class Trackio:
    """A run of the project that is named like the recipe, on this machine unless `TRACKIO_SPACE_ID` says otherwise."""

    def begin(self, run_dir: Path, recipe: Mapping[str, Any]) -> None:
        """See `Tracker.begin`."""
        import trackio

        self._trackio: Any = trackio
        trackio.init(project=recipe["name"], name=f"{run_dir.name}-{own_id(run_dir)[:8]}", config=dict(recipe), resume="allow")

    def log(self, line: Mapping[str, Any]) -> None:
        """See `Tracker.log`."""
        self._trackio.log(scalars(line), step=line["step"])

    def close(self) -> None:
        """See `Tracker.close`."""
        self._trackio.finish()


class MLflow:
    """A run of the experiment that is named like the recipe; `MLFLOW_TRACKING_URI` applies."""

    def begin(self, run_dir: Path, recipe: Mapping[str, Any]) -> None:
        """See `Tracker.begin`. The server chooses the run's id, which is kept in `trackers/mlflow-run`."""
        import mlflow

        self._mlflow: Any = mlflow
        mlflow.set_experiment(recipe["name"])
        kept = run_dir / "trackers" / "mlflow-run"
        if kept.is_file():
            mlflow.start_run(run_id=kept.read_text("utf-8").strip())
            return
        started = mlflow.start_run(run_name=run_dir.name)
        with atomic_output(kept) as stream:
            stream.write(f"{started.info.run_id}\n")
        mlflow.log_dict(dict(recipe), "recipe.json")

    def log(self, line: Mapping[str, Any]) -> None:
        """See `Tracker.log`."""
        self._mlflow.log_metrics(scalars(line), step=line["step"])

    def close(self) -> None:
        """See `Tracker.close`."""
        self._mlflow.end_run()


def own_id(run_dir: Path) -> str:
    """The same random name each time for one run directory, another for every other."""
    kept = run_dir / "trackers" / "id"
    if not kept.is_file():
        with atomic_output(kept) as stream:
            stream.write(f"{uuid.uuid4().hex}\n")
    return kept.read_text("utf-8").strip()


KINDS: Mapping[str, Callable[[], Tracker]] = {"tensorboard": TensorBoard, "wandb": Wandb, "trackio": Trackio, "mlflow": MLflow}
"""Name in the recipe, which is the package's name too, to tracker."""
