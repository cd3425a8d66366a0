"""A whole ColBERT index through PyLate, served over searchparty's own HTTP: first-stage late interaction, not re-ranking.

PyLate pins older versions of torch and sentence-transformers than searchparty's extras need, so this runs in an environment of
its own, where searchparty is installed without extras. In a checkout of searchparty:

    python -m venv colbert && colbert/bin/pip install pylate .
    colbert/bin/python docs/examples/colbert_server.py build CORPUS FOLDER --model lightonai/GTE-ModernColBERT-v1
    colbert/bin/python docs/examples/colbert_server.py serve FOLDER --port 8000

and a recipe says `index: http://127.0.0.1:8000` with `retriever: {dialect: native}`. PyLate's PLAID index finds candidates by
centroids, so hits are approximate, and may be fewer than asked for. A document's id in it is its row in the corpus; passages
stay in searchparty's store.

Run end to end on 3 December 2026 on the CPU with PyLate 1.6.0, sentence-transformers 5.3.0, transformers 5.3.0, torch 2.13.0
and `--backend stanford`, over 2,000 passages, with a plain encoder (all-MiniLM-L6-v2) under an untrained projection. Never run:
the default backend (fast-plaid 1.4.6 is compiled for torch 2.11; crashes with 2.13 in a build), a trained ColBERT model,
a card.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path

from pylate import indexes, models, retrieve

from searchparty.errors import UserError
from searchparty.http_server.listening import Server, bind
from searchparty.retrieval.building import new_index_folder
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.dense.model_files import model_digest
from searchparty.retrieval.manifest import FORMAT_VERSION, Manifest, file_sizes, load_manifest, save_manifest
from searchparty.retrieval.server import RetrievalServer
from searchparty.retrieval.store import PassageStore, save_passages
from searchparty.retrieval.types import Hit

NAME = "pylate-plaid"
PLAID, MODEL = "plaid", "model"
"""Folders of PyLate's index and of the model within the index folder."""


def build(
    corpus: Path,
    folder: Path,
    model: str,
    *,
    backend: str = "fast-plaid",
    together: int = 50_000,
    batch: int = 32,
    overwrite: bool = False,
) -> None:
    """Encode a corpus and index it; `folder` appears when it is complete.

    Args:
        corpus: a file that searchparty can read.
        folder: where the index goes.
        model: a ColBERT model, a name or a folder. A copy of it goes into the index: PyLate gives a plain encoder a projection
            of random numbers each time, so that the name alone may stand for another model when the index is opened.
        backend: `fast-plaid`, or `stanford` for PLAID in torch alone, which compiles C++ when it is first used.
        together: passages whose vectors are in memory at a time. PLAID's centroids come from the first so many.
        batch: passages encoded at a time.
        overwrite: replace an index that is there.

    Raises:
        UserError: faults of the corpus or of the target folder.
    """
    encoder = models.ColBERT(model_name_or_path=model)
    with new_index_folder(folder, overwrite) as unfinished:
        summary = save_passages(unfinished, read_corpus(corpus, None), corpus)
        encoder.save_pretrained(str(unfinished / MODEL))
        index = _index(unfinished, encoder, backend, override=True)
        texts = (passage.contents for passage in PassageStore(unfinished))
        first = 0
        while part := list(islice(texts, together)):
            vectors = encoder.encode(part, batch_size=batch, is_query=False, show_progress_bar=True)
            ids = [str(row) for row in range(first, first + len(part))]
            index.add_documents(documents_ids=ids, documents_embeddings=vectors)
            first += len(part)
        save_manifest(
            unfinished,
            Manifest(
                format=FORMAT_VERSION,
                retriever=NAME,
                settings={"model": model, "model_digest": model_digest(unfinished / MODEL), "backend": backend},
                corpus=corpus.name,
                passages=summary.passages,
                passages_sha256=summary.passages_sha256,
                ids_sha256=summary.ids_sha256,
                counts={},
                built_with={"pylate": _version("pylate"), "fast-plaid": _version("fast-plaid")},
                files=file_sizes(unfinished),
            ),
        )


class PyLateRetriever:
    """A searchparty `Retriever` over an index that `build` made. One thread at a time is inside PyLate."""

    def __init__(self, folder: Path, batch: int = 32) -> None:
        """Open an index and the model in it. Raises UserError if passages are cut short; PyLate's own files are not checked."""
        self.manifest = load_manifest(folder)
        self._passages = PassageStore(folder)
        self._batch = batch
        self._encoder = models.ColBERT(model_name_or_path=str(folder / MODEL))
        backend = str(self.manifest.settings["backend"])
        self._retriever = retrieve.ColBERT(index=_index(folder, self._encoder, backend, override=False))
        self._searching = threading.Lock()

    @property
    def identity(self) -> str:
        """Model and corpus."""
        return self.manifest.identity

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by corpus order; none for a query without any character to read."""
        asked = [query for query in queries if query.strip()]
        found = iter(self._found(asked, min(k, len(self._passages))) if asked else [])
        return [next(found) if query.strip() else [] for query in queries]

    def _found(self, queries: list[str], k: int) -> list[list[Hit]]:
        with self._searching:
            vectors = self._encoder.encode(queries, batch_size=self._batch, is_query=True, show_progress_bar=False)
            results = self._retriever.retrieve(queries_embeddings=vectors, k=k)
        ranked = [sorted((-float(entry["score"]), int(entry["id"])) for entry in result)[:k] for result in results]
        return [
            [Hit(self._passages[row], rank, -negative) for rank, (negative, row) in enumerate(result, start=1)]
            for result in ranked
        ]


def _index(folder: Path, encoder: models.ColBERT, backend: str, *, override: bool) -> indexes.PLAID:
    place = {"index_folder": str(folder), "index_name": PLAID, "override": override}
    if backend == "stanford":
        return indexes.PLAID(**place, use_fast=False, embedding_size=encoder.get_sentence_embedding_dimension())
    return indexes.PLAID(**place, show_progress=False)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def serve(folder: Path, host: str, port: int) -> None:
    """Answer requests until a signal comes."""
    retriever = PyLateRetriever(folder)
    application = RetrievalServer(retriever, retriever.manifest.passages)
    listener = bind(host, port)
    Server(application, listener, lambda address: print(f"serving at {address}", flush=True)).run_on_socket()


def main() -> None:
    """Build or serve."""
    parser = argparse.ArgumentParser(description="A ColBERT index through PyLate, served over searchparty's HTTP.")
    actions = parser.add_subparsers(dest="action", required=True)
    making = actions.add_parser("build")
    making.add_argument("corpus", type=Path)
    making.add_argument("folder", type=Path)
    making.add_argument("--model", required=True)
    making.add_argument("--backend", choices=["fast-plaid", "stanford"], default="fast-plaid")
    making.add_argument("--overwrite", action="store_true")
    serving = actions.add_parser("serve")
    serving.add_argument("folder", type=Path)
    serving.add_argument("--host", default="127.0.0.1")
    serving.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    try:
        if options.action == "build":
            build(options.corpus, options.folder, options.model, backend=options.backend, overwrite=options.overwrite)
        else:
            serve(options.folder, options.host, options.port)
    except UserError as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")


if __name__ == "__main__":
    main()
