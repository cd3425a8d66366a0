"""What a run depends on besides its recipe: a retriever that is put together is described part by part."""

from __future__ import annotations

from pathlib import Path

import pytest
from training_factories import recipe, rl_stage

from searchparty.models.model_folders import model_identity
from searchparty.retrieval.manifest import load_manifest
from searchparty.training.inputs import describe_inputs


@pytest.mark.parametrize("written_out", [True, False])
def test_every_index_of_a_plan_is_an_input(world: Path, tmp_path: Path, written_out: bool) -> None:
    sources = [str(world / "index"), {"index": str(world / "index"), "weight": 0.5}, "http://127.0.0.1:9"]
    (tmp_path / "plan.yaml").write_text(f"sources: {sources}")
    index = {"sources": sources} if written_out else str(tmp_path / "plan.yaml")
    inputs = describe_inputs(recipe(a={**rl_stage(world), "index": index}))
    identity = load_manifest(world / "index").identity
    assert {key: digest for key, digest in inputs["a"].items() if key.startswith("index")} == {
        "index.sources.0": identity,
        "index.sources.1": identity,
    }


def test_a_single_index_is_an_input_and_a_plan_that_is_not_there_is_none(world: Path) -> None:
    inputs = describe_inputs(recipe(a=rl_stage(world), b=rl_stage(world, index="nowhere.yaml")))
    assert inputs["a"]["index"] == load_manifest(world / "index").identity
    assert "index" not in inputs["b"]


def test_the_encoder_that_a_source_names_is_an_input(world: Path, tmp_path: Path) -> None:
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (encoder / name).write_text("{}")
    source = {"index": str(world / "index"), "model": str(encoder)}
    inputs = describe_inputs(recipe(a={**rl_stage(world), "index": {"sources": [source]}}))
    assert inputs["a"]["index.sources.0.model"] == model_identity(encoder)
