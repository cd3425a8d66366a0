"""A generated world from the command line: made, indexed, and played by the expert that knows it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from searchparty.config.recipe import EvalRecipe
from searchparty.errors import UserError
from searchparty.evaluation.run import evaluate
from searchparty.models.loading import load_model
from searchparty.retrieval.bm25 import BM25Index
from searchparty.world import WorldParameters, make_world, write_world


@pytest.fixture(scope="module")
def world_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place") / "world"
    write_world(make_world(WorldParameters(entities=120, train=20, dev=10, test=20)), folder)
    BM25Index.build(folder / "corpus.jsonl", folder.parent / "index")
    return folder


def test_the_expert_of_a_world_is_named_by_its_folder_and_plays_with_the_compact_prompts(
    world_folder: Path, tmp_path: Path
) -> None:
    recipe = EvalRecipe.model_validate(
        {
            "team": "hierarchical", "model": f"scripted:world-expert@{world_folder}", "prompts": "world",
            "questions": world_folder / "questions-test.jsonl", "index": str(world_folder.parent / "index"),
            "sampling": {"max_tokens": 2000},
        }
    )  # fmt: skip
    summary = asyncio.run(evaluate(recipe, tmp_path / "run"))
    assert summary.quality["macro"].exact_match.value > 0.9


def test_two_worlds_have_models_of_two_identities(world_folder: Path, tmp_path: Path) -> None:
    write_world(make_world(WorldParameters(seed=1, entities=120, train=20, dev=10, test=20)), tmp_path / "other")
    names = [load_model(f"scripted:world-expert@{folder}").identity for folder in (world_folder, tmp_path / "other")]
    assert names[0] != names[1]


def test_an_unknown_script_of_a_world_lists_those_there_are(world_folder: Path) -> None:
    with pytest.raises(UserError, match=r"scripted:world-expert@.*, scripted:world-imperfect@"):
        load_model(f"scripted:world-guru@{world_folder}")
