"""Dense retrieval over an index folder: a query's vector against the vectors of all passages, by dot product."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from searchparty.errors import UserError
from searchparty.retrieval.building import Progress, new_index_folder, no_progress
from searchparty.retrieval.dense.build import work_folder, write_dense_folder
from searchparty.retrieval.dense.encoder import SAME_VECTOR, Encoder, checked
from searchparty.retrieval.dense.encoding import SHARD_PASSAGES
from searchparty.retrieval.dense.exact import BLOCK_ROWS, ExactSearch
from searchparty.retrieval.dense.vectors import STORAGES, Storage, load_vectors
from searchparty.retrieval.manifest import Manifest, load_manifest, refuse_other_settings
from searchparty.retrieval.store import PassageStore
from searchparty.retrieval.types import Hit


class DenseIndex:
    """A `Retriever` over a folder that `build` made. Safe to use from several threads; they are let in one by one."""

    def __init__(
        self, folder: Path, encoder: Encoder, *, devices: Sequence[str] = ("cpu",), block_rows: int = BLOCK_ROWS
    ) -> None:
        """Open an index.

        Args:
            folder: made by `build`.
            encoder: for the queries; it must be the one that encoded the passages, which is checked on some of them.
            devices: where vectors are searched, see `ExactSearch`.
            block_rows: likewise.

        Raises:
            UserError: an index that is cut short, another encoder or profile, vectors in another order than the passages.
        """
        self.manifest: Manifest = load_manifest(folder)
        refuse_other_settings(folder, self.manifest, encoder.settings)
        self.passages = PassageStore(folder)
        settings, counts = self.manifest.settings, self.manifest.counts
        if counts["dimension"] != encoder.dimension:
            raise UserError(
                f"{folder}: its vectors, by {settings['model']}, have {counts['dimension']} numbers, those of {encoder.name}"
                f" have {encoder.dimension}; open it with the model that it was built with"
            )
        self._vectors = load_vectors(
            folder,
            storage_named(settings["storage"]),
            len(self.passages),
            encoder.dimension,
            counts["largest_norm"],
        )
        self._encoder = encoder
        self._refuse_other_vectors(folder)
        self._exact = ExactSearch(self._vectors, devices, block_rows)
        self._searching = threading.Lock()

    @classmethod
    def build(
        cls,
        corpus: Path,
        folder: Path,
        encoder: Encoder,
        *,
        format: str | None = None,
        storage: Storage = "float16",
        overwrite: bool = False,
        progress: Progress = no_progress,
        shard_passages: int = SHARD_PASSAGES,
    ) -> DenseIndex:
        """Build an index over a corpus file into `folder`, which appears only when it is complete, and open it.

        Vectors that an interrupted build has made wait beside `folder` and are used by the next one.

        Args:
            corpus: a file that `read_corpus` can read.
            folder: where the index goes.
            encoder: for passages and queries.
            format: name of the corpus format; None finds it by content.
            storage: numbers of the stored vectors.
            overwrite: replace an index that is there already.
            progress: told about each stage.
            shard_passages: passages encoded between two points from which a build can go on.

        Raises:
            UserError: faults of the corpus, of the target folder, of the encoder's vectors, or of a work folder that was left.
        """
        with new_index_folder(folder, overwrite) as unfinished:
            work = work_folder(folder)
            write_dense_folder(corpus, unfinished, work, encoder, storage, format, progress, shard_passages)
        return cls(folder, encoder)

    @property
    def identity(self) -> str:
        """Settings and corpus in one line."""
        return self.manifest.identity

    def __len__(self) -> int:
        return len(self.passages)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by corpus order; none for a query that is blank or has the vector 0."""
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        asked = [number for number, query in enumerate(queries) if query.strip()]
        hits: list[list[Hit]] = [[] for _ in queries]
        if not asked:
            return hits
        with self._searching:
            vectors = checked(self._encoder.encode_queries([queries[number] for number in asked]), len(asked), self._encoder)
            found = self._exact.search(vectors, k)
        for number, vector, best in zip(asked, vectors, found, strict=True):
            if vector.any():
                hits[number] = [
                    Hit(self.passages[row], rank, score)
                    for rank, (row, score) in enumerate(zip(best.rows.tolist(), best.scores.tolist(), strict=True), start=1)
                ]
        return hits

    def _refuse_other_vectors(self, folder: Path) -> None:
        """Encode some passages again: another model, another pooling or another order of passages shows at once."""
        rows = np.unique(np.linspace(0, len(self.passages) - 1, 3).astype(np.int64))
        texts = [self.passages[row].contents for row in rows.tolist()]
        encoded = checked(self._encoder.encode_passages(texts), len(texts), self._encoder)
        stored = self._vectors.decoded(rows)
        distances = np.linalg.norm(encoded - stored, axis=1)
        lengths = np.maximum(np.linalg.norm(encoded, axis=1), np.linalg.norm(stored, axis=1))
        strange = np.flatnonzero(~(distances <= SAME_VECTOR * lengths))
        if len(strange):
            row, built_with = int(rows[strange[0]]), self.manifest.settings["model"]
            raise UserError(
                f"{folder}: the vector of passage {self.passages[row].id!r} (row {row}) is not what {self._encoder.name} makes"
                f" of it; open the index with {built_with}, or build it again: its vectors may be in another order"
            )


def storage_named(name: float | str) -> Storage:
    """The storage that a manifest names. Raises UserError if there is none of that name."""
    for storage in STORAGES:
        if storage == name:
            return storage
    raise UserError(f"no vectors are stored as {name}; choose one of: {', '.join(STORAGES)}")
