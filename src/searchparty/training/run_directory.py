"""The directory of a training run.

    recipe.resolved.yaml         the complete recipe
    environment.json             versions, and what every stage's result depends on besides the recipe
    metrics.jsonl                one line a step or development evaluation, of all stages
    stages/NAME/stage.json       what the audit must know of the stage
    stages/NAME/episodes/        what each step sampled and learned from (`records`)
    stages/NAME/checkpoints/     states to go on from; in each, `model` is a model folder
    stages/NAME/result.json      written when the stage is done: which checkpoint is its model
    evaluations/NAME/            a run directory of `searchparty eval`
    report.json, report.md       the evaluations side by side
    overlap.json                 what training and evaluation have in common
    trackers/                    what experiment trackers were sent, and files of their own

Knows paths, and who may begin or continue a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchparty.config.load import dump_recipe, parse_recipe
from searchparty.errors import UserError
from searchparty.evaluation.run_folder import (
    check_flags,
    flat,
    foreign_names,
    locked,
    read_document,
    recipe_faults,
    remove_names,
)  # fmt: skip
from searchparty.files import atomic_output, read_json, write_json
from searchparty.training.recipe import TrainRecipe

FORMAT = 1
SEED = "seed-"
"""Begins the name of the run of one of several seeds."""
OWN_NAMES = (
    "recipe.resolved.yaml", "environment.json", "metrics.jsonl", "stages", "evaluations", "report.json", "report.md",
    "overlap.json", "workflows.json", "workflows.md", "trackers",
)  # fmt: skip
MAY_CHANGE = (
    ".alarms.", ".checkpoint.keep", ".tokens_per_pass", ".device", ".retriever.timeout", ".retriever.attempts",
    ".retriever.break_", ".max_batch_tokens",
)  # fmt: skip
"""Parts of a stage that may be other ones in a resumed run, as may the trackers: they change what is shown, or what a machine
can hold."""


@dataclass(frozen=True)
class StageDirectory:
    """Paths of one stage."""

    path: Path

    @property
    def episodes(self) -> Path:
        return self.path / "episodes"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def description(self) -> Path:
        return self.path / "stage.json"

    @property
    def result(self) -> Path:
        return self.path / "result.json"


@dataclass(frozen=True)
class TrainDirectory:
    """Paths of one run, and the rules for beginning and continuing it."""

    path: Path

    @property
    def recipe_file(self) -> Path:
        return self.path / "recipe.resolved.yaml"

    @property
    def environment_file(self) -> Path:
        return self.path / "environment.json"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def is_run(self) -> bool:
        """Whether a training run was begun here."""
        return self.recipe_file.is_file() and (self.path / "stages").is_dir()

    def stage(self, name: str) -> StageDirectory:
        """The directory of one stage."""
        return StageDirectory(self.path / "stages" / name)

    def evaluation(self, name: str) -> Path:
        """The run directory of one evaluation."""
        return self.path / "evaluations" / name

    def check_may_begin(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse before any work is done.

        Raises:
            UserError: a run is there and neither flag is given; there is nothing to resume; or it is another kind of folder.
        """
        if resume and overwrite:
            raise UserError("--resume and --overwrite exclude each other; choose one")
        check_flags(self.path, is_run=self.is_run, resume=resume, overwrite=overwrite)
        foreign = foreign_names(self.path, OWN_NAMES)
        if not self.is_run and (foreign or self.recipe_file.exists()):
            found = foreign[0] if foreign else "recipe.resolved.yaml of an evaluation"
            raise UserError(f"{self.path}: holds other files ({found}) but no training run; give another directory")

    def locked(self) -> AbstractContextManager[int]:
        """Keep other processes out. Raises UserError if one is at work there."""
        return locked(self.path)

    def begin(self, recipe: TrainRecipe, environment: Mapping[str, Any]) -> None:
        """Remove what an earlier run left, and write what this one is; the recipe comes last."""
        self.recipe_file.unlink(missing_ok=True)
        remove_names(self.path, OWN_NAMES)
        (self.path / "stages").mkdir(parents=True)
        write_json(self.environment_file, {"format": FORMAT, **environment})
        with atomic_output(self.recipe_file) as stream:
            stream.write(dump_recipe(recipe))

    def read_recipe(self) -> TrainRecipe:
        """The recipe that the run was begun with. Raises UserError if this version does not understand it."""
        return parse_recipe(TrainRecipe, read_document(self.recipe_file), str(self.recipe_file))

    def check_same(self, recipe: TrainRecipe, environment: Mapping[str, Any]) -> None:
        """Compare with the run that is to be continued. Raises UserError with one line for each difference."""
        written = read_json(self.environment_file, dict)
        if written.get("format") != FORMAT:
            raise UserError(
                f"{self.path}: was made by searchparty {written.get('searchparty')} (format {written.get('format')}), this "
                f"version continues format {FORMAT}; finish it with that version, or begin again with --overwrite"
            )
        faults = recipe_faults(self.recipe_file, dump_recipe(recipe), _may_change)
        old, new = flat(written.get("inputs", {})), flat(dict(environment.get("inputs", {})))
        faults += [
            f"{self.path}: {key} changed since the run was begun; begin another run for it"
            for key in sorted(old.keys() & new.keys())
            if old[key] != new[key]
        ]
        if faults:
            raise UserError(*faults)


PARTS = ("datasets", "roles", "watched")
"""Of a line of metrics, where it has them: mappings from names."""


class MetricsLog:
    """`metrics.jsonl`: appended line by line, cut back to where a resumed run goes on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.also: Callable[[Mapping[str, Any]], None] | None = None
        """Told of every line after it was written."""

    def lines(self) -> Iterator[dict[str, Any]]:
        """The whole lines; a torn last one is passed over. Raises UserError for a line that this program did not write."""
        if self._path.exists():
            for number, text in enumerate(self._path.read_bytes().split(b"\n")[:-1], start=1):
                try:
                    line = json.loads(text)
                    if not {"stage", "kind", "step"} <= line.keys():
                        raise ValueError("stage, kind or step is missing")
                    if not isinstance(line["step"], int) or not all(isinstance(line.get(part, {}), dict) for part in PARTS):
                        raise ValueError(f"step is no whole number, or {', '.join(PARTS)} are no objects")
                except (ValueError, AttributeError) as error:
                    raise UserError(
                        f"{self._path}:{number}: no line of metrics ({error}); repair or remove this line"
                    ) from None
                yield line

    def keep(self, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
        """Write the file anew with the lines that are wanted."""
        kept = [line for line in self.lines() if wanted(line)]
        with atomic_output(self._path) as stream:
            for line in kept:
                stream.write(json.dumps(line, ensure_ascii=False) + "\n")

    def append(self, line: Mapping[str, Any]) -> None:
        """Add one line with one write. Raises UserError if the disk is full."""
        try:
            with self._path.open("ab") as stream:  # buffered: without, a full disk may take half a line and say nothing
                stream.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
        except OSError as error:
            raise UserError(f"{self._path}: cannot be written ({error.strerror}); make room and use --resume") from None
        if self.also is not None:
            self.also(line)


def _may_change(key: str) -> bool:
    """Whether a resumed run may have another value under this key of the recipe. A stage's name decides nothing."""
    top, *below = key.split(".", 2)
    return top == "trackers" or (len(below) == 2 and any(part in f".{below[1]}" for part in MAY_CHANGE))


def seed_runs(path: Path) -> list[Path]:
    """The runs of several seeds of one recipe below a directory, in the order of their seeds; none if it holds no such."""
    found = {child: child.name.removeprefix(SEED) for child in path.glob(f"{SEED}*") if TrainDirectory(child).is_run}
    return sorted(found, key=lambda child: (int(found[child]) if found[child].isdecimal() else 0, child.name))
