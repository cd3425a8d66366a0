"""An evaluation that is repeated from recorded answers, without its index."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from searchparty.config.recipe import EvalRecipe
from searchparty.episodes.types import Episode
from searchparty.errors import UserError
from searchparty.evaluation.run import evaluate
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.questions import write_questions
from searchparty.questions.types import Question
from searchparty.retrieval.bm25 import BM25Index

QUESTIONS = [
    Question("1", "What is the capital of France?", ("Paris",), "nq"),
    Question("2", "Who was Dante?", ("a poet",), "nq"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_questions(tmp_path / "questions.jsonl", QUESTIONS)
    passage = {"id": "p1", "title": "Paris", "text": "Paris is the capital of France."}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(passage) + "\n")
    BM25Index.build(tmp_path / "corpus.jsonl", tmp_path / "index")
    return tmp_path


def recipe_for(place: Path, cache: Any, **changes: Any) -> EvalRecipe:
    recipe = {"team": "chained", "model": "scripted:default", "questions": place / "questions.jsonl"}
    return EvalRecipe.model_validate({**recipe, "retriever": {"cache": cache}, **changes})


def run(recipe: EvalRecipe, directory: Path) -> dict[str, Any]:
    asyncio.run(evaluate(recipe, directory, on_episode=lambda *_: None))
    latest = RunDirectory(directory).latest(lambda episode: episode)
    return {str(key): essence(episode) for key, episode in latest.items()}


def essence(episode: Episode) -> Any:
    retrievals = [(found.query, found.k, found.hits) for found in episode.retrievals]
    return retrievals, [[(span.kind, span.ids, span.text) for span in agent.spans] for agent in episode.agents]


def test_a_run_repeats_from_its_cache_after_the_index_is_gone(place: Path) -> None:
    recorded = run(recipe_for(place, str(place / "cache"), index=str(place / "index")), place / "first")
    shutil.rmtree(place / "index")
    assert run(recipe_for(place, {"path": str(place / "cache"), "mode": "replay"}), place / "again") == recorded
    first, again = (json.loads(RunDirectory(place / name).environment_file.read_text()) for name in ("first", "again"))
    assert first["retriever"] == again["retriever"]


def test_a_search_that_was_not_recorded_ends_a_replayed_run_with_one_line(place: Path) -> None:
    run(recipe_for(place, str(place / "cache"), index=str(place / "index"), limit=1), place / "first")
    with pytest.raises(UserError, match="no recorded answer for k = 3 and the query") as caught:
        run(recipe_for(place, {"path": str(place / "cache"), "mode": "replay"}), place / "again")
    assert len(caught.value.lines) == 1


def test_a_recording_run_needs_its_index(place: Path) -> None:
    with pytest.raises(UserError, match="index: the team chained searches"):
        run(recipe_for(place, str(place / "cache")), place / "run")


def test_whose_answers_are_replayed_means_nothing_while_recording(place: Path) -> None:
    with pytest.raises(ValidationError, match="identity means nothing for the mode record"):
        recipe_for(place, {"path": "cache", "mode": "record", "identity": "bm25"})
