"""Dense retrieval over an index folder: a query's vector against the vectors of all passages, by dot product."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

from searchparty.errors import UserError
from searchparty.retrieval.building import Progress, new_index_folder, no_progress
from searchparty.retrieval.dense.build import AS_USUAL, DenseOptions, work_folder, write_dense_folder
from searchparty.retrieval.dense.checking import refuse_other_vectors
from searchparty.retrieval.dense.deciding import VectorSearch
from searchparty.retrieval.dense.encoder import Encoder, checked
from searchparty.retrieval.dense.exact import BLOCK_ROWS, ExactSearch
from searchparty.retrieval.dense.faiss_kinds import EXACT, FAISS_FILE, KINDS
from searchparty.retrieval.dense.vectors import STORAGES, Storage, load_vectors
from searchparty.retrieval.manifest import Manifest, load_manifest, refuse_other_settings
from searchparty.retrieval.store import PassageStore
from searchparty.retrieval.types import Hit


class DenseIndex:
    """A `Retriever` over a folder that `build` made. Safe to use from several threads; they are let in one by one."""

    def __init__(
        self,
        folder: Path,
        encoder: Encoder,
        *,
        search: str | None = None,
        devices: Sequence[str] = ("cpu",),
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        """Open an index.

        Args:
            folder: made by `build`.
            encoder: for the queries; it must be the one that encoded the passages, which is checked on some of them.
            search: `exact` to pass over a FAISS index that is there; None searches as it was built.
            devices: where vectors are searched exactly, see `ExactSearch`. On cards search is always exact.
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
        vectors = load_vectors(
            folder, storage_named(settings["storage"]), len(self.passages), encoder.dimension, counts["largest_norm"]
        )
        refuse_other_vectors(folder, self.passages, vectors, encoder, str(settings["model"]))
        kind = str(settings["search"])
        self._encoder = encoder
        self._is_exact = EXACT in (kind, search) or any(device != "cpu" for device in devices)
        self._search: VectorSearch
        if self._is_exact:
            self._search = ExactSearch(vectors, devices, block_rows)
        else:
            from searchparty.retrieval.dense.faiss_search import FaissSearch

            self._search = FaissSearch(vectors, kind, folder / FAISS_FILE, int(settings.get(KINDS[kind].knob, 0)))
        self._searching = threading.Lock()

    @classmethod
    def build(
        cls,
        corpus: Path,
        folder: Path,
        encoder: Encoder,
        *,
        format: str | None = None,
        options: DenseOptions = AS_USUAL,
        overwrite: bool = False,
        progress: Progress = no_progress,
    ) -> DenseIndex:
        """Build an index over a corpus file into `folder`, which appears only when it is complete, and open it.

        Vectors that an interrupted build has made wait beside `folder` and are used by the next one.

        Args:
            corpus: a file that `read_corpus` can read.
            folder: where the index goes.
            encoder: for passages and queries.
            format: name of the corpus format; None finds it by content.
            options: storage, search, and vectors that are there already.
            overwrite: replace an index that is there already.
            progress: told about each stage.

        Raises:
            UserError: faults of the corpus, of the target folder, of the encoder's vectors, or of a work folder that was left.
        """
        with new_index_folder(folder, overwrite) as unfinished:
            write_dense_folder(corpus, unfinished, work_folder(folder), encoder, format, options, progress)
        shutil.rmtree(work_folder(folder), ignore_errors=True)
        return cls(folder, encoder)

    @property
    def identity(self) -> str:
        """Settings and corpus in one line; an exact search has one identity whatever else was built."""
        if not self._is_exact:
            return self.manifest.identity
        passed_over = {"faiss", *(kind.knob for kind in KINDS.values())}
        kept = {name: value for name, value in self.manifest.settings.items() if name not in passed_over}
        return self.manifest.model_copy(update={"settings": {**kept, "search": EXACT}}).identity

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
            found = self._search.search(vectors, k)
        for number, vector, best in zip(asked, vectors, found, strict=True):
            if vector.any():
                hits[number] = [
                    Hit(self.passages[row], rank, score)
                    for rank, (row, score) in enumerate(zip(best.rows.tolist(), best.scores.tolist(), strict=True), start=1)
                ]
        return hits


def storage_named(name: float | str) -> Storage:
    """The storage that a manifest names. Raises UserError if there is none of that name."""
    for storage in STORAGES:
        if storage == name:
            return storage
    raise UserError(f"no vectors are stored as {name}; choose one of: {', '.join(STORAGES)}")
