"""An evaluation run: play every question as often as asked, append each episode as it ends, then score.

Interrupted at any instant it resumes with the episodes that are there; only missing ones, and those that a failing service
ended, are played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from searchparty.config.recipe import EvalRecipe
from searchparty.episodes.store import EpisodeWriter
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.evaluation.protocols.choosing import chosen_questions
from searchparty.evaluation.protocols.following import describe_protocol, follow_protocol
from searchparty.evaluation.protocols.types import load_protocol
from searchparty.evaluation.provenance import provenance
from searchparty.evaluation.run_directory import RunDirectory, describe_environment
from searchparty.evaluation.scorers import Scorer, scorer_named
from searchparty.evaluation.scoring import ScoredEpisode, missing_episode, score_episode
from searchparty.evaluation.staging import Models, Stage, set_stage
from searchparty.evaluation.summary import RunSummary, check_dataset_names, summarise
from searchparty.files import atomic_output, write_json
from searchparty.questions import load_questions
from searchparty.questions.types import Question
from searchparty.teams.play import play
from searchparty.teams.registry import find_team
from searchparty.teams.workspace import run_together

OnEpisode = Callable[[Episode, int, int], None]
"""Called after each episode with the episode, the number now done, and the number asked."""


@dataclass(frozen=True)
class Attempt:
    """One episode to be played."""

    question: Question
    sample: int


def load_asked_questions(recipe: EvalRecipe) -> tuple[list[Question], list[str]]:
    """The questions of a recipe, and a line for each record of the file that is no question. Raises as `load_scorable` does,
    and if the file does not hold what the recipe's protocol asks."""
    questions, skipped = load_scorable(recipe.questions, recipe.format, recipe.limit)
    if recipe.protocol is not None:
        questions = chosen_questions(load_protocol(recipe.protocol), questions, recipe.questions)
    return questions, skipped


def load_scorable(path: Path, form: str | None, limit: int | None) -> tuple[list[Question], list[str]]:
    """The first `limit` questions of a file, and a line for each record that is no question.

    Raises:
        UserError: for a file without questions, or with a question that has no golden answer; see also `check_dataset_names`.
    """
    loaded = load_questions(path, form)
    questions = loaded.questions[:limit]
    if not questions:
        raise UserError(f"{path}: holds no question")
    check_dataset_names((question.dataset for question in questions), path)
    for question in questions:
        if not question.golden_answers:
            raise UserError(f"{path}: {question.key} has no golden answer, so it cannot be scored; use a split that has them")
    return questions, [f"{skipped.where}: {skipped.reason}" for skipped in loaded.skipped]


async def evaluate(
    recipe: EvalRecipe,
    directory: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    on_episode: OnEpisode = lambda *_: None,
    models: Models | None = None,
) -> RunSummary:
    """Carry out a recipe in a run directory and return its numbers.

    Args:
        resume: continue the run that is there.
        overwrite: delete the run that is there and begin again.
        models: models that several runs share; they stay open.

    Raises:
        UserError: for anything in the recipe or the directory that does not fit; nothing is written then.
    """
    run = RunDirectory(directory)
    run.check_may_begin(resume=resume, overwrite=overwrite)
    recipe = follow_protocol(recipe)
    scorer = scorer_named(recipe.scorer)
    questions, skipped = load_asked_questions(recipe)
    stage = set_stage(recipe, models)
    try:
        described = stage.describe()
        environment = describe_environment(described, recipe.questions, skipped)
        environment["protocol"] = describe_protocol(
            recipe.protocol, described["retriever"], questions, searches=stage.retriever is not None
        )
        with run.locked():
            if resume:
                run.check_same(recipe, environment)
            else:
                run.begin(recipe, questions, environment)
            await _play_missing(run, recipe, stage, questions, on_episode)
            return score_run(run, recipe, scorer)
    finally:
        await stage.close()


async def _play_missing(
    run: RunDirectory, recipe: EvalRecipe, stage: Stage, questions: Sequence[Question], on_episode: OnEpisode
) -> None:
    endings = run.latest(lambda episode: episode.stop_reason)
    good = {key for key, reason in endings.items() if not reason.is_service_failure}
    attempts = [Attempt(question, sample) for sample in range(recipe.samples) for question in questions]
    missing = iter([attempt for attempt in attempts if (attempt.question.key, attempt.sample) not in good])
    done = len(good)

    async def worker(writer: EpisodeWriter) -> None:
        nonlocal done
        for attempt in missing:
            episode = await play(
                stage.team, attempt.question, stage.cast, stage.retriever, sample=attempt.sample, seed=recipe.seed
            )
            writer.write(episode)
            done += 1
            on_episode(episode, done, len(attempts))

    with EpisodeWriter(run.episodes_file) as writer:
        await run_together([worker(writer) for _ in range(min(recipe.concurrency, len(attempts)))])


def score_run(run: RunDirectory, recipe: EvalRecipe, scorer: Scorer, *, unfinished: bool = False) -> RunSummary:
    """Score all episodes of a run, and write `scores.jsonl` and `summary.json`.

    Args:
        unfinished: count episodes that are missing as wrong, and say how many, instead of refusing the run.

    Raises:
        UserError: if episodes are missing, or belong to no question of the run; if a question has no golden answer.
    """
    questions = {question.key: question for question in run.read_questions()}
    check_dataset_names((question.dataset for question in questions.values()), run.questions_file)
    if unscorable := [key for key, question in questions.items() if not question.golden_answers]:
        raise UserError(
            f"{run.path}: {unscorable[0]} has no golden answer, so nothing can be scored; clients of a served team tell none"
        )
    found = run.latest(lambda episode: _score(episode, questions, scorer, run))
    asked = [(key, sample) for sample in range(recipe.samples) for key in questions]
    missing = [key for key in asked if key not in found]
    if missing and not unfinished:
        raise UserError(
            f"{run.path}: {len(missing)} of {len(asked)} episodes are missing; finish the run with --resume, or count them as "
            f"wrong: searchparty score {run.path} --unfinished"
        )
    found |= {(key, sample): missing_episode(questions[key], sample, scorer) for key, sample in missing}
    scored = [found[key] for key in asked]
    write_scores(run.scores_file, scored)
    team = find_team(recipe.team.name).name
    summary = summarise(scored, team=team, model=recipe.model.spec, scorer=scorer.name, samples=recipe.samples)
    write_json(run.summary_file, {**orjson.loads(orjson.dumps(summary)), "provenance": provenance(run, recipe, scorer)})
    return summary


def _score(episode: Episode, questions: Mapping[str, Question], scorer: Scorer, run: RunDirectory) -> ScoredEpisode:
    if episode.question_key not in questions:
        raise UserError(f"{run.episodes_file}: an episode of {episode.question_key}, which the run did not ask; was it edited?")
    return score_episode(episode, questions[episode.question_key].golden_answers, scorer)


def write_scores(path: Path, scored: Sequence[ScoredEpisode]) -> None:
    """Write scored episodes as JSON lines, atomically."""
    with atomic_output(path, "wb") as stream:
        for episode in scored:
            stream.write(orjson.dumps(episode, option=orjson.OPT_APPEND_NEWLINE))
