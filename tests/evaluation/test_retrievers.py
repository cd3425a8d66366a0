"""What a recipe may say under `index`, and what comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from searchparty.config.load import dump_recipe, load_recipe, parse_recipe
from searchparty.config.recipe import TeamRecipe
from searchparty.config.retrieval import RetrieverPlan, SourceSpec
from searchparty.errors import UserError
from searchparty.evaluation.retrievers import open_choice, plan_of
from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.fusion import FusedRetriever

CORPUS = Path(__file__).parent.parent / "data" / "retrieval" / "passages.jsonl"
QUERY = "Who is the spouse of the director of film Up, Down, Fragile?"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("retrievers") / "index"
    BM25Index.build(CORPUS, folder)
    return str(folder)


def recipe(index: object) -> TeamRecipe:
    return parse_recipe(TeamRecipe, {"team": "rag", "model": "scripted:default", "index": index}, "r.yaml")


def test_a_name_stays_a_name_and_a_plan_is_written_out_in_the_resolved_recipe(index: str) -> None:
    assert recipe(index).index == index
    planned = recipe({"sources": [index, {"index": "http://host:1", "weight": 2}], "fusion": "weighted"})
    assert planned.index == RetrieverPlan(
        sources=[SourceSpec(index=index), SourceSpec(index="http://host:1", weight=2)], fusion="weighted"
    )
    assert parse_recipe(TeamRecipe, yaml.safe_load(dump_recipe(planned)), "again") == planned


def test_keys_of_a_plan_can_be_overridden_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("team: rag\nmodel: scripted:default\nindex: {sources: [a, b], depth: 5}\n")
    assert load_recipe(TeamRecipe, path, ["index.depth=7"], {}).index == RetrieverPlan(
        sources=[SourceSpec(index="a"), SourceSpec(index="b")], depth=7
    )


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"sources": []}, r"r\.yaml: index\.sources: List should have at least 1 item"),
        ({"source": ["a"]}, r"r\.yaml: index\.source: unknown key; did you mean sources\?"),
        ({"sources": [{"index": "a", "wait": 1}]}, r"index\.sources\.0\.wait: unknown key; did you mean"),
        ({"sources": ["a", {"index": "b", "weight": 0}]}, r"index\.sources\.1\.weight: Input should be greater than 0"),
        (
            {"sources": ["a"], "fusion": "weighted", "depth": 3},
            r"index: fusion, depth means nothing for a single source; remove",
        ),
        (
            {"sources": ["a"], "rerank": {"kind": "oracle", "model": "m"}},
            r"index\.rerank\.kind: Input should be 'cross-encoder'",
        ),
        (5, r"r\.yaml: index: Input should be a valid string \(found 5\)"),
    ],
)
def test_faults_are_named_where_they_stand(given: object, fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        recipe(given)


def test_a_plan_in_a_file_of_its_own_opens(tmp_path: Path, index: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"sources: [{index}, {index}]\ndepth: 20\none_per_title: true\n")
    retriever = open_choice(str(path))
    assert retriever.identity.startswith("one-per-title[fused(reciprocal-rank,depth=20)[1 x bm25(")
    [hits] = retriever.search([QUERY], 5)
    assert hits[0].passage.title == "Up, Down, Fragile"
    assert len({hit.passage.title for hit in hits}) == 5


def test_a_single_source_is_the_retriever_itself(index: str) -> None:
    assert isinstance(open_choice(index), BM25Index)
    assert isinstance(open_choice(plan_of(index)), BM25Index)
    assert isinstance(open_choice(RetrieverPlan(sources=[SourceSpec(index=index)] * 2)), FusedRetriever)


def test_a_fusion_with_a_server_that_has_not_answered_does_not_know_its_identity(index: str) -> None:
    plan = RetrieverPlan(sources=[SourceSpec(index=index), SourceSpec(index="http://127.0.0.1:9")], one_per_title=True)
    retriever = open_choice(plan)
    assert not retriever.identity_known
    retriever.close()


@pytest.mark.parametrize(
    ("choice", "fault"),
    [
        ("nowhere.yaml", "nowhere.yaml: no such recipe"),
        (RetrieverPlan(sources=[SourceSpec(index="nowhere")]), "nowhere: no such index folder"),
        (RetrieverPlan(sources=[SourceSpec(index="http://host:1", device="cuda")]), "is a server, which has a model, a device"),
    ],
)
def test_what_cannot_be_opened_says_so(choice: str | RetrieverPlan, fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        open_choice(choice)
