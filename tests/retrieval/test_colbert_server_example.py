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
    """A text is its set of words in place of token vectors, and the model it was encoded with.

    A model that is not loaded from a folder is another one each time, as PyLate's untrained projections are.
    """

    made = 0

    def __init__(self, model_name_or_path: str) -> None:
        weights = Path(model_name_or_path) / "config.json"
        Model.made += 1
        self.weights = weights.read_text() if weights.exists() else f"random {Model.made}"

    def save_pretrained(self, path: str) -> None:
        Path(path).mkdir()
        (Path(path) / "config.json").write_text(self.weights)

    def get_sentence_embedding_dimension(self) -> int:
        return 96

    def encode(self, sentences: list[str], *, batch_size: int, is_query: bool, show_progress_bar: bool) -> list[Any]:
        words = [sorted({*text.lower().replace('"', " ").split()}) for text in sentences]
        return [("query" if is_query else "passage", own, self.weights) for own in words]


class Plaid:
    """Documents in a file of the folder, as PyLate keeps its index, so that opening it anew must find them."""

    def __init__(
        self,
        index_folder: str,
        index_name: str,
        override: bool = False,
        use_fast: bool = True,
        show_progress: bool = True,
        embedding_size: int | None = None,
    ) -> None:
        assert embedding_size == (None if use_fast else 96)
        self.file = Path(index_folder) / index_name / "documents.json"
        self.file.parent.mkdir(exist_ok=True)
        self.documents: dict[str, tuple[list[str], str]] = {}
        if not override:
            self.documents = json.loads(self.file.read_text())

    def add_documents(self, documents_ids: list[str], documents_embeddings: Sequence[tuple[str, list[str], str]]) -> Plaid:
        for document, (kind, words, weights) in zip(documents_ids, documents_embeddings, strict=True):
            assert kind == "passage"
            self.documents[document] = (words, weights)
        self.file.write_text(json.dumps(self.documents))
        return self


class Retriever:
    """Counts the words in common, and gives equals in an order that is not the corpus's."""

    def __init__(self, index: Plaid) -> None:
        self.index = index

    def retrieve(self, queries_embeddings: list[tuple[str, list[str], str]], k: int) -> list[list[dict[str, Any]]]:
        assert all(kind == "query" for kind, _, _ in queries_embeddings)
        results = []
        for _, words, weights in queries_embeddings:
            assert all(same == weights for _, same in self.index.documents.values())
            scored = [{"id": name, "score": float(len({*words} & {*own}))} for name, (own, _) in self.index.documents.items()]
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


@pytest.mark.parametrize("backend", ["fast-plaid", "stanford"])
def test_the_native_client_gets_what_pylate_finds_with_the_model_of_the_index(
    example: Any, tmp_path: Path, backend: str
) -> None:
    corpus = write_corpus(tmp_path / "corpus.jsonl", PASSAGES)
    example.build(corpus, tmp_path / "index", "some/model", backend=backend, together=3)
    retriever = example.PyLateRetriever(tmp_path / "index")
    with running(retriever, retriever.manifest.passages) as address:
        client = RemoteRetriever(address, dialect="native")
        ada, engine, blank = client.search(["first Ada program", "engine babbage", " \n"], 10)
        assert f"pylate-plaid(backend={backend},model_digest=sha256:" in client.identity
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


def test_a_fault_of_a_user_is_one_line_and_exit_code_2(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["colbert_server.py", "serve", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit) as end:
        example.main()
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith(f"colbert_server.py: error: {tmp_path / 'nowhere'}: no such index folder")
