"""Small makers of passages, corpora and retrievers for the tests of this room."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.types import Hit, Passage

DATA = Path(__file__).parent.parent / "data" / "retrieval"


def write_corpus(path: Path, passages: Iterable[Passage]) -> Path:
    """A corpus file of `id, title, text`."""
    lines = [json.dumps({"id": p.id, "title": p.title, "text": p.text}, ensure_ascii=False) for p in passages]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def passages_of(*texts: str) -> list[Passage]:
    """Passages with ids `p0`, `p1`, … and no title."""
    return [Passage(f"p{number}", "", text) for number, text in enumerate(texts)]


def build(folder: Path, passages: Iterable[Passage], **settings: float) -> BM25Index:
    """A BM25 index over passages."""
    folder.mkdir(parents=True, exist_ok=True)
    return BM25Index.build(write_corpus(folder / "corpus.jsonl", passages), folder / "index", **settings)


def ids(hits: Iterable[Hit]) -> list[str]:
    """Passage ids of the hits, best first."""
    return [hit.passage.id for hit in hits]


class FunctionRetriever:
    """A retriever that answers with one hit whose passage says what was asked; remembers every batch."""

    identity = "function"

    def __init__(self, before: Callable[[Sequence[str]], None] = lambda queries: None) -> None:
        self.batches: list[list[str]] = []
        self._before = before

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.batches.append(list(queries))
        self._before(queries)
        return [[Hit(Passage(query, query, f"about {query}, k={k}"), 1, 1.0)] for query in queries]
