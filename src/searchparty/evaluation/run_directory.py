"""The run directory: which files a run has, who may begin or continue one, and what must stay the same when it is continued.

recipe.resolved.yaml   the complete recipe
environment.json       versions, identities of models and retriever, hash of the questions
questions.jsonl        the questions asked, golden answers included; not of a served team, whose questions stand in its episodes
episodes/eval.jsonl    one episode a line, appended as they end; of two with one question and sample the later counts
scores.jsonl           scores and counts per episode, written again by each scoring
summary.json           the run's numbers
judge.json, judge.jsonl what a judge said of the answers, if one was asked
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from searchparty.config.load import dump_recipe, parse_recipe
from searchparty.config.recipe import EvalRecipe
from searchparty.episodes.store import read_episodes
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.evaluation.run_folder import (
    check_flags,
    describe_machine,
    flat,
    foreign_names,
    locked,
    read_document,
    recipe_faults,
    remove_names,
)  # fmt: skip
from searchparty.files import atomic_output, read_json, sha256_of, write_json
from searchparty.questions import read_questions, write_questions
from searchparty.questions.types import Question

T = TypeVar("T")

MAY_CHANGE_ON_RESUME = ("concurrency", "retriever", "model.timeout", "model.max_batch_tokens", "model.device")
"""Parts of a recipe that change how long a run takes, not what it gives."""

MUST_STAY = ("models", "chat", "prompts", "team", "retriever", "questions", "protocol")
"""Parts of the environment that a resumed run must find as they were. One that a server had not told is no difference."""

FOLLOWS = "protocol.departures"
"""Follows from the other parts, and from how this version words it."""

OWN_NAMES = {
    "recipe.resolved.yaml", "environment.json", "questions.jsonl", "episodes", "scores.jsonl", "summary.json", "judge.json",
    "judge.jsonl", ".lock",
}  # fmt: skip


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
            UserError: a run is there and neither flag is given; there is nothing to resume; or the directory holds other files.
        """
        check_flags(self.path, is_run=self.is_run, resume=resume, overwrite=overwrite)
        foreign = foreign_names(self.path, OWN_NAMES)
        if foreign and not self.is_run:
            raise UserError(
                f"{self.path}: holds other files ({foreign[0]}) but no run, so it is not overwritten; give another directory"
            )

    def locked(self) -> AbstractContextManager[int]:
        """Keep other processes out while this one begins or continues the run. Raises UserError if one is at work there."""
        return locked(self.path)

    def begin(self, recipe: EvalRecipe, questions: list[Question] | None, environment: dict[str, Any]) -> None:
        """Remove what an earlier run left, and write the files that say what this one is.

        The recipe goes first and comes last: where it is, a run was begun. Files that are not a run's own stay. `questions`
        is None if they are not known yet.
        """
        self.recipe_file.unlink(missing_ok=True)
        remove_names(self.path, OWN_NAMES - {".lock"})
        asked: dict[str, Any] = {}
        if questions is not None:
            write_questions(self.questions_file, questions)
            asked = {"asked": len(questions), "asked_sha256": sha256_of(self.questions_file)}
        write_json(self.environment_file, {**environment, "questions": {**environment["questions"], **asked}})
        with atomic_output(self.recipe_file) as stream:
            stream.write(dump_recipe(recipe))

    def check_same(self, recipe: EvalRecipe, environment: dict[str, Any]) -> None:
        """Compare with the run that is to be continued, and write down what has become known since.

        Raises:
            UserError: one line for each difference.
        """
        faults = recipe_faults(self.recipe_file, dump_recipe(recipe), lambda key: key.startswith(MAY_CHANGE_ON_RESUME))
        then = read_json(self.environment_file, dict)
        old, new = (
            {key: value for part in MUST_STAY for key, value in flat({part: one.get(part)}).items()}
            for one in (then, environment)
        )
        faults += [
            f"{self.path}: {key} changed since the run was begun ({old[key]} → {new[key]}); begin another run for it"
            for key in sorted((old.keys() & new.keys()) - {FOLLOWS})
            if old[key] is not None and new[key] is not None and old[key] != new[key]
        ]
        if faults:
            raise UserError(*faults)
        if any(value is None and new.get(key) is not None for key, value in old.items()):
            write_json(
                self.environment_file, {**then, **{part: environment[part] for part in MUST_STAY if part != "questions"}}
            )

    def read_recipe(self) -> EvalRecipe:
        """The recipe that the run was begun with. Raises UserError if there is none that this version understands."""
        if not self.is_run:
            raise UserError(f"{self.path}: no run here (recipe.resolved.yaml is missing); check the path")
        return parse_recipe(EvalRecipe, read_document(self.recipe_file), str(self.recipe_file))

    def read_environment(self) -> dict[str, Any]:
        """What `environment.json` says, with mappings for `questions` and `packages`, and a `protocol` that is None or whole.

        Raises:
            UserError: a part of it has another form.
        """
        return read_json(self.environment_file, _checked_environment)

    def read_questions(self) -> list[Question]:
        """The questions asked, in the order of asking. Raises UserError if the file is not as the run wrote it."""
        told = self.read_environment()["questions"]
        if told.get("served"):
            return list(self._served_questions().values())
        written = told.get("asked_sha256")
        questions = read_questions(self.questions_file)
        if sha256_of(self.questions_file) != written:
            raise UserError(f"{self.questions_file}: was changed after the run began; what was asked is no longer known")
        return questions

    def _served_questions(self) -> dict[str, Question]:
        """What clients of a served team asked, by key; they tell no golden answers."""

        def asked(episode: Episode) -> Question:
            return Question(episode.question_key.removeprefix(f"{episode.dataset}/"), episode.question, (), episode.dataset)

        return {question.key: question for question in self.latest(asked).values()}

    def latest(self, of: Callable[[Episode], T]) -> dict[tuple[str, int], T]:
        """What `of` makes of each episode, by question key and sample; a later attempt supersedes an earlier one.

        Episodes are read one after the other, so a large run is never in memory as a whole.
        """
        if not self.episodes_file.exists():
            return {}
        episodes = read_episodes(self.episodes_file, allow_torn_end=True)
        return {(episode.question_key, episode.sample): of(episode) for episode in episodes}


def _checked_environment(value: Any) -> dict[str, Any]:
    found = {**value, "questions": dict(value["questions"]), "packages": dict(value.get("packages") or {})}
    protocol = value.get("protocol")
    if protocol is not None:
        protocol = {"name": None, "version": None, "sha256": None, "document": {}, "departures": [], **protocol}
        departures = [str(line) for line in protocol["departures"]]
        found["protocol"] = {**protocol, "document": dict(protocol["document"]), "departures": departures}
    return found


def describe_environment(stage: dict[str, Any], questions_file: Path, skipped: Sequence[str]) -> dict[str, Any]:
    """What a result depends on besides its recipe.

    Args:
        stage: as a stage describes itself.
        skipped: records of the questions file that are no questions, one line each.
    """
    return {
        **describe_machine(),
        **stage,
        "questions": {"sha256": sha256_of(questions_file)},
        "skipped_records": list(skipped),
    }


def describe_service(stage: dict[str, Any]) -> dict[str, Any]:
    """What the episodes of a served team depend on besides its recipe; `stage` as in `describe_environment`."""
    return {**describe_machine(), **stage, "questions": {"served": True}, "skipped_records": [], "protocol": None}
