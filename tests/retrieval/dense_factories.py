"""A small deterministic encoder, and dense indexes over it, for the tests of this room."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from retrieval_factories import write_corpus

from searchparty.retrieval.building import no_progress
from searchparty.retrieval.dense.build import DenseOptions
from searchparty.retrieval.dense.index import DenseIndex
from searchparty.retrieval.types import Passage


class HashingEncoder:
    """Each word has a fixed random direction; a text is the sum of its words, scaled to length 1. No word: the zero vector."""

    def __init__(self, dimension: int = 32, seed: str = "", profile: str = "hashing", scaled: bool = True) -> None:
        self.dimension = dimension
        self.name = f"hashing-{seed or 'plain'}"
        self.digest = f"sha256:{self.name}"
        self.settings = {"profile": profile}
        self.encoded: list[int] = []
        self._seed = seed
        self._scaled = scaled

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        return self._encode(queries)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded.append(len(texts))
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension))
        for number, text in enumerate(texts):
            for word in text.lower().replace('"', " ").split():
                digest = hashlib.sha256(f"{self._seed}:{word}".encode()).digest()
                vectors[number] += np.random.default_rng(int.from_bytes(digest[:8], "little")).normal(size=self.dimension)
        if self._scaled:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors.astype(np.float32)


def build_dense(folder: Path, passages: Iterable[Passage], encoder: HashingEncoder | None = None, **options: Any) -> DenseIndex:
    """A dense index over passages."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus = write_corpus(folder / "corpus.jsonl", passages)
    progress = options.pop("progress", no_progress)
    return DenseIndex.build(
        corpus, folder / "index", encoder or HashingEncoder(), options=DenseOptions(**options), progress=progress
    )
