"""Recipes: strict, every fault at once with the nearest name, overrides, and a resolved form that says everything."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from searchparty.config.load import dump_recipe, load_recipe
from searchparty.config.recipe import EvalRecipe
from searchparty.errors import UserError

GOOD = {"team": "chained", "model": "scripted:default", "questions": "q.jsonl", "index": "index"}


def recipe_file(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump({**GOOD, **changes}))
    return path


def test_contract_10_every_fault_is_named_at_once_with_file_key_and_nearest_name(tmp_path: Path) -> None:
    path = recipe_file(tmp_path, sample=2, sampling={"temprature": 0, "top_p": 7}, model={"spec": "x", "route": "tokenss"})
    with pytest.raises(UserError) as caught:
        load_recipe(EvalRecipe, path, ["limit=0"], {})
    lines = sorted(caught.value.lines)
    assert len(lines) == 5
    assert all(line.startswith(f"{path}: ") for line in lines)
    text = "\n".join(lines)
    for part in (
        "sample: unknown key; did you mean samples?",
        "sampling.temprature: unknown key; did you mean temperature?",
        "sampling.top_p: ",
        "model.route: ",
        "limit: ",
    ):
        assert part in text


def test_contract_10_a_missing_key_says_how_to_give_it() -> None:
    with pytest.raises(UserError) as caught:
        load_recipe(EvalRecipe, None, [], {"team": "direct"})
    assert "command line: model: is missing; give it in the recipe or as model=VALUE" in caught.value.lines


def test_contract_10_unknown_keys_deep_in_roles_are_refused(tmp_path: Path) -> None:
    path = recipe_file(tmp_path, roles={"searcher": {"promt": "p.yaml"}})
    with pytest.raises(UserError, match=r"roles\.searcher\.promt: unknown key; did you mean prompt\?"):
        load_recipe(EvalRecipe, path, [], {})


def test_overrides_win_over_the_file_and_options_are_part_of_both(tmp_path: Path) -> None:
    recipe = load_recipe(EvalRecipe, recipe_file(tmp_path), ["sampling.temperature=0", "team.max_steps=7"], {"samples": 3})
    assert (recipe.sampling.temperature, recipe.samples) == (0, 3)
    assert (recipe.team.name, recipe.team.options) == ("chained", {"max_steps": 7})


@pytest.mark.parametrize("word", ["=1", "samples", "sampling.top_p=[1"])
def test_a_malformed_override_is_one_line(tmp_path: Path, word: str) -> None:
    with pytest.raises(UserError, match=r"override has the form|not valid YAML"):
        load_recipe(EvalRecipe, recipe_file(tmp_path), [word], {})


def test_a_recipe_that_is_no_mapping_or_no_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("- a")
    with pytest.raises(UserError, match="a recipe is a mapping"):
        load_recipe(EvalRecipe, path, [], {})
    path.write_text("team: chained\nmodel: [\n")
    with pytest.raises(UserError, match=r"recipe\.yaml:3: not valid YAML"):
        load_recipe(EvalRecipe, path, [], {})


def test_the_resolved_recipe_holds_every_default_and_loads_to_the_same_recipe(tmp_path: Path) -> None:
    recipe = load_recipe(EvalRecipe, recipe_file(tmp_path, team={"name": "chained", "passages": 5}), [], {})
    resolved = tmp_path / "resolved.yaml"
    resolved.write_text(dump_recipe(recipe))
    assert load_recipe(EvalRecipe, resolved, [], {}) == recipe
    assert yaml.safe_load(resolved.read_text())["sampling"]["temperature"] == 1.0


@pytest.mark.parametrize(
    ("model", "idle"),
    [
        ({"spec": "scripted:default", "tokenizer": "x", "device": "cuda"}, "tokenizer, device"),
        ({"spec": "smollm2", "route": "chat"}, "route"),
        ({"spec": "http://127.0.0.1:8000/v1", "dtype": "float32"}, "dtype"),
    ],
)
def test_a_key_that_means_nothing_for_this_form_of_model_is_refused(tmp_path: Path, model: dict[str, str], idle: str) -> None:
    with pytest.raises(UserError, match=f"{idle} means nothing for the model"):
        load_recipe(EvalRecipe, recipe_file(tmp_path, model=model), [], {})


def test_a_key_that_stands_twice_is_refused_and_not_silently_the_last(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("team: direct\nmodel: scripted:default\nteam: rag\n")
    with pytest.raises(UserError, match=r"recipe\.yaml:3: .*the key team stands twice"):
        load_recipe(EvalRecipe, path, [], {})


@pytest.mark.parametrize("changes", [{"seed": 10**23}, {"seed": -1}, {"sampling": {"max_tokens": 10**23}}])
def test_numbers_that_no_record_can_hold_are_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(UserError):
        load_recipe(EvalRecipe, recipe_file(tmp_path, **changes), [], {})


@pytest.mark.parametrize(
    "text",
    ["? [a]\n: b\n", "? {a: 1}\n: b\n", "name: 2020-13-45\n", f"seed: {'1' * 5000}\n", "a: " + "[" * 3000 + "]" * 3000 + "\n"],
    ids=["list as key", "mapping as key", "impossible date", "endless number", "endless brackets"],
)
def test_what_yaml_cannot_build_is_one_line_that_names_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load_recipe(EvalRecipe, path, [], {})
    (line,) = caught.value.lines
    assert line.startswith(str(path))


def test_an_override_that_yaml_cannot_build_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="index=2020-13-45: the value is not valid YAML; quote it"):
        load_recipe(EvalRecipe, recipe_file(tmp_path), ["index=2020-13-45"], {})


@pytest.mark.parametrize("below", ["", "a\0b"])
def test_what_is_extended_must_be_a_path(tmp_path: Path, below: str) -> None:
    with pytest.raises(UserError, match="extends: the path of another recipe is needed"):
        load_recipe(EvalRecipe, recipe_file(tmp_path, extends=below), [], {})


def test_a_number_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    path = recipe_file(
        tmp_path, sampling={"temperature": float("inf")}, roles={"searcher": {"sampling": {"temperature": 1e999}}}
    )
    with pytest.raises(UserError) as caught:
        load_recipe(EvalRecipe, path, [], {})
    assert [line.split(": ")[1] for line in caught.value.lines] == [
        "sampling.temperature",
        "roles.searcher.sampling.temperature",
    ]
