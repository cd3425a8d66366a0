"""The run directory: which files a run has, who may begin or continue one, and what must stay the same when it is continued.

recipe.resolved.yaml   the complete recipe
environment.json       versions, identities of models and retriever, hash of the questions
questions.jsonl        the questions asked, golden answers included
episodes/eval.jsonl    one episode a line, appended as they end; of two with one question and sample the later counts
scores.jsonl           scores and counts per episode, written again by each scoring
summary.json           the run's numbers
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from searchparty import __version__
from searchparty.config.load import dump_recipe
from searchparty.config.recipe import EvalRecipe
from searchparty.episodes.store import read_episodes
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.files import atomic_output, read_json, write_json
from searchparty.questions import read_questions, write_questions
from searchparty.questions.types import Question

MAY_CHANGE_ON_RESUME = ("concurrency", "retriever")
"""Parts of a recipe that change how long a run takes, not what it gives."""


@dataclass(frozen=True)
class RunDirectory:
    """Paths of one run, and the rules for beginning and continuing it."""

    path: Path

    @property
    def recipe_file(self) -> Path:
        return self.path / "recipe.resolved.yaml"

    @property
    def environment_file(self) -> Path:
        return self.path / "environment.json"

    @property
    def questions_file(self) -> Path:
        return self.path / "questions.jsonl"

    @property
    def episodes_file(self) -> Path:
        return self.path / "episodes" / "eval.jsonl"

    @property
    def scores_file(self) -> Path:
        return self.path / "scores.jsonl"

    @property
    def summary_file(self) -> Path:
        return self.path / "summary.json"

    @property
    def is_run(self) -> bool:
        """Whether a run was begun here."""
        return self.recipe_file.is_file()

    def check_may_begin(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse before any work is done. An interrupted run is never lost to a repeated command.

        Raises:
            UserError: the directory exists and neither flag is given; there is nothing to resume; or it is no run to overwrite.
        """
        if resume and not self.is_run:
            raise UserError(f"{self.path}: nothing to resume here; leave out --resume to begin a run")
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self.path}: is a file; give a directory for the run")
        if resume or not self.path.exists() or not any(self.path.iterdir()):
            return
        if not overwrite:
            raise UserError(f"{self.path}: already exists; add --resume to continue it or --overwrite to begin again")
        if not self.is_run:
            raise UserError(f"{self.path}: holds files but no run, so it is not overwritten; give another directory")

    def begin(self, recipe: EvalRecipe, questions: list[Question], environment: dict[str, Any]) -> None:
        """Write the files that say what the run is. The recipe comes last: where it is, a run was begun."""
        if self.path.exists():
            shutil.rmtree(self.path)
        write_questions(self.questions_file, questions)
        write_json(self.environment_file, environment)
        with atomic_output(self.recipe_file) as stream:
            stream.write(dump_recipe(recipe))

    def check_same(self, recipe: EvalRecipe, environment: dict[str, Any]) -> None:
        """Raises UserError, one line each, for what differs from the run that is to be continued."""
        before = yaml.safe_load(self.recipe_file.read_text(encoding="utf-8"))
        now = yaml.safe_load(dump_recipe(recipe))
        then = read_json(self.environment_file, dict)
        faults = [
            f"{self.path}: {key} was {before.get(key)!r}, is now {now[key]!r}; resume with what it was begun with"
            for key in now
            if key not in MAY_CHANGE_ON_RESUME and before.get(key) != now[key]
        ]
        faults += [
            f"{self.path}: {key} changed since the run was begun ({then.get(key)} → {environment[key]})"
            for key in ("models", "retriever", "questions")
            if then.get(key) != environment[key]
        ]
        if faults:
            raise UserError(*faults)

    def read_recipe(self) -> EvalRecipe:
        """The recipe that the run was begun with."""
        if not self.is_run:
            raise UserError(f"{self.path}: no run here (recipe.resolved.yaml is missing); check the path")
        return EvalRecipe.model_validate(yaml.safe_load(self.recipe_file.read_text(encoding="utf-8")))

    def read_questions(self) -> list[Question]:
        """The questions asked, in the order of asking."""
        return read_questions(self.questions_file)

    def read_latest_episodes(self) -> dict[tuple[str, int], Episode]:
        """Question key and sample to episode; a later attempt supersedes an earlier one."""
        if not self.episodes_file.exists():
            return {}
        episodes = read_episodes(self.episodes_file, allow_torn_end=True)
        return {(episode.question_key, episode.sample): episode for episode in episodes}


def describe_environment(*, models: dict[str, Any], retriever: str | None, questions_file: Path) -> dict[str, Any]:
    """What a result depends on besides its recipe."""
    return {
        "searchparty": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": _versions(["numpy", "bm25s", "PyStemmer", "torch", "transformers", "tokenizers", "safetensors", "httpx"]),
        "models": models,
        "retriever": retriever,
        "questions": {"sha256": hashlib.sha256(questions_file.read_bytes()).hexdigest()},
    }


def _versions(packages: list[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
