"""The example server over PyLate, against a stand-in that takes PyLate's own arguments and nothing else."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from retrieval_factories import write_corpus
from running_server import running

from searchparty.errors import UserError
from searchparty.retrieval.remote import RemoteRetriever
from searchparty.retrieval.types import Passage

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "colbert_server.py"
PASSAGES = [
    Passage("a", "Ada", "wrote the first program"),
    Passage("b", "Babbage", "built an engine"),
    Passage("c", "Ada", "wrote the first program"),
    Passage("d", "Engine", "an engine of Babbage and Ada"),
]


class Model:
    """A text is its set of words in place of token vectors. Queries and passages must be told apart."""

    def __init__(self, model_name_or_path: str) -> None:
        self.name = model_name_or_path

    def encode(self, sentences: list[str], *, batch_size: int, is_query: bool, show_progress_bar: bool) -> list[Any]:
        return [("query" if is_query else "passage", sorted({*text.lower().replace('"', " ").split()})) for text in sentences]


class Plaid:
    """Documents in a file of the folder, as PyLate keeps its index, so that opening it anew must find them."""

    def __init__(self, index_folder: str, index_name: str, override: bool = False, show_progress: bool = True) -> None:
        self.file = Path(index_folder) / index_name / "documents.json"
        self.file.parent.mkdir(exist_ok=True)
        self.documents: dict[str, list[str]] = {}
        if not override:
            self.documents = json.loads(self.file.read_text())

    def add_documents(self, documents_ids: list[str], documents_embeddings: Sequence[tuple[str, list[str]]]) -> Plaid:
        for document, (kind, words) in zip(documents_ids, documents_embeddings, strict=True):
            assert kind == "passage"
            self.documents[document] = words
        self.file.write_text(json.dumps(self.documents))
        return self


class Retriever:
    """Counts the words in common, and gives equals in an order that is not the corpus's."""

    def __init__(self, index: Plaid) -> None:
        self.index = index

    def retrieve(self, queries_embeddings: list[tuple[str, list[str]]], k: int) -> list[list[dict[str, Any]]]:
        assert all(kind == "query" for kind, _ in queries_embeddings)
        results = []
        for _, words in queries_embeddings:
            scored = [{"id": name, "score": float(len({*words} & {*own}))} for name, own in self.index.documents.items()]
            results.append(sorted(scored, key=lambda entry: (-entry["score"], -int(entry["id"])))[:k])
        return results


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    pylate = ModuleType("pylate")
    pylate.models = SimpleNamespace(ColBERT=Model)  # type: ignore[attr-defined]
    pylate.indexes = SimpleNamespace(PLAID=Plaid)  # type: ignore[attr-defined]
    pylate.retrieve = SimpleNamespace(ColBERT=Retriever)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pylate", pylate)
    spec = importlib.util.spec_from_file_location("colbert_server", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_native_client_gets_what_pylate_finds(example: Any, tmp_path: Path) -> None:
    example.build(write_corpus(tmp_path / "corpus.jsonl", PASSAGES), tmp_path / "index", "some/model", together=3)
    retriever = example.PyLateRetriever(tmp_path / "index")
    with running(retriever, retriever.manifest.passages) as address:
        client = RemoteRetriever(address, dialect="native")
        ada, engine, blank = client.search(["first Ada program", "engine babbage", " \n"], 10)
        assert "pylate-plaid(model=some/model)@" in client.identity
        client.close()
    assert [(hit.passage, hit.rank, hit.score) for hit in ada[:3]] == [
        (PASSAGES[0], 1, 3.0),
        (PASSAGES[2], 2, 3.0),
        (PASSAGES[3], 3, 1.0),
    ]
    assert [hit.passage.id for hit in engine[:2]] == ["b", "d"]
    assert blank == []


def test_an_index_cut_short_and_a_repeated_id_are_user_errors(example: Any, tmp_path: Path) -> None:
    example.build(write_corpus(tmp_path / "corpus.jsonl", PASSAGES), tmp_path / "index", "some/model")
    (tmp_path / "index" / "passages.jsonl").write_bytes(b"")
    with pytest.raises(UserError, match="has 0 bytes where"):
        example.PyLateRetriever(tmp_path / "index")
    with pytest.raises(UserError, match="was already used"):
        example.build(write_corpus(tmp_path / "twice.jsonl", [PASSAGES[0]] * 2), tmp_path / "other", "some/model")
    assert not (tmp_path / "other").exists()
