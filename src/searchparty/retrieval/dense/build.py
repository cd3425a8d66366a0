"""Writes the files of a dense index: passages, vectors in their order, a FAISS index if one is asked for, and the manifest."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from searchparty import __version__
from searchparty.errors import UserError
from searchparty.retrieval.building import Progress
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.dense.adopting import adopt_vectors
from searchparty.retrieval.dense.checking import refuse_other_vectors
from searchparty.retrieval.dense.encoder import Encoder, checked
from searchparty.retrieval.dense.encoding import SHARD_PASSAGES, encode_passages
from searchparty.retrieval.dense.faiss_kinds import EXACT, FAISS_FILE, KINDS, SEARCHES
from searchparty.retrieval.dense.vectors import SCALES_FILE, VECTORS_FILE, Storage, Vectors, load_vectors
from searchparty.retrieval.manifest import FORMAT_VERSION, Manifest, file_sizes, save_manifest
from searchparty.retrieval.store import PassageStore, save_passages

NAME = "dense"
GOOD_RECALL = 0.95
"""Recall at which more effort is not worth its time, by default."""


@dataclass(frozen=True)
class DenseOptions:
    """What is built.

    Attributes:
        storage: numbers of the stored vectors; None is float16, or whatever `vectors` holds.
        vectors: a FAISS flat index with the vectors of the corpus in its order, instead of encoding it.
        search: `exact`, or a kind of FAISS index.
        recall: the least share of the ten best that an approximate index should find; effort is raised until it does.
        shard_passages: passages encoded between two points from which a build can go on.
    """

    storage: Storage | None = None
    vectors: Path | None = None
    search: str = EXACT
    recall: float = GOOD_RECALL
    shard_passages: int = SHARD_PASSAGES

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise UserError(f"no way to search vectors is called {self.search!r}; choose one of: {', '.join(SEARCHES)}")
        if not 0 < self.recall <= 1:
            raise UserError(f"recall must be above 0 and at most 1, not {self.recall:g}")


AS_USUAL = DenseOptions()


def work_folder(target: Path) -> Path:
    """Where the vectors of an index that is not complete yet wait."""
    return target.with_name(f".{target.name}.encoding")


def write_dense_folder(
    corpus: Path, folder: Path, work: Path, encoder: Encoder, format: str | None, options: DenseOptions, progress: Progress
) -> None:
    """Fill the empty `folder` with an index over `corpus`; see `DenseIndex.build`. What is in `work` stays there as well."""
    progress("reading passages", 0, None)
    summary = save_passages(folder, read_corpus(corpus, format), corpus)
    passages = PassageStore(folder)
    storage: Storage = options.storage or ("float16" if options.vectors is None else "float32")
    # What took long to make waits in the work folder; what is taken over would only have to be copied once more.
    home = folder if options.vectors is not None else work
    if options.vectors is None:
        encoded = encode_passages(passages, summary.passages_sha256, encoder, storage, work, progress, options.shard_passages)
    else:
        encoded = adopt_vectors(options.vectors, len(passages), encoder, options.storage, home, progress)
    vectors = load_vectors(home, storage, len(passages), encoder.dimension, encoded.largest_norm)
    if options.vectors is not None:
        refuse_other_vectors(options.vectors, passages, vectors, encoder, encoder.name)
    settings, counts = _approximate(vectors, passages, encoder, home, options, progress)
    if home != folder:
        for name in (VECTORS_FILE, *((SCALES_FILE,) if storage == "int8" else ()), *((FAISS_FILE,) if settings else ())):
            _put_also(work / name, folder / name)
    save_manifest(
        folder,
        Manifest(
            format=FORMAT_VERSION,
            retriever=NAME,
            settings={
                "model": encoder.name,
                "model_digest": encoder.digest,
                **encoder.settings,
                "storage": storage,
                "search": options.search,
                **settings,
            },
            corpus=corpus.name,
            passages=summary.passages,
            passages_sha256=summary.passages_sha256,
            ids_sha256=summary.ids_sha256,
            counts={"dimension": encoder.dimension, "largest_norm": encoded.largest_norm, **counts},
            built_with={
                "searchparty": __version__,
                **{name: version(name) for name in ("numpy", "torch")},
                **({} if options.search == EXACT else {"faiss": _faiss_version()}),
                "python": platform.python_version(),
            },
            files=file_sizes(folder),
        ),
    )


def _put_also(path: Path, place: Path) -> None:
    """Have a file at a second place: the same bytes where the file system has links, else a copy."""
    try:
        os.link(path, place)
    except OSError:
        shutil.copyfile(path, place)


def _faiss_version() -> str:
    from searchparty.retrieval.dense.faiss_search import VERSION

    return VERSION


def _approximate(
    vectors: Vectors, passages: PassageStore, encoder: Encoder, home: Path, options: DenseOptions, progress: Progress
) -> tuple[Mapping[str, str], Mapping[str, float]]:
    """Build the FAISS index that is asked for and find the least effort that is good enough.

    Returns what the manifest says of it: settings, and the recall that was measured. Nothing for exact search.
    """
    if options.search == EXACT:
        return {}, {}
    from searchparty.retrieval.dense.exact import ExactSearch
    from searchparty.retrieval.dense.faiss_search import FaissSearch, build_faiss
    from searchparty.retrieval.dense.recall import DEPTH, recall, sample_queries

    kind = KINDS[options.search]
    build_faiss(vectors, options.search, home / FAISS_FILE, progress)
    progress("measuring recall", 0, None)
    texts = sample_queries(passages)
    if not texts:
        raise UserError(f"recall cannot be measured without a passage that has text; use the search {EXACT}")
    queries = checked(encoder.encode_queries(texts), len(texts), encoder)
    truth = ExactSearch(vectors).search(queries, DEPTH)
    for effort in kind.efforts(len(vectors)):
        measured = recall(FaissSearch(vectors, options.search, home / FAISS_FILE, effort), truth, queries)
        if measured >= options.recall:
            break
    else:
        raise UserError(
            f"{options.search}: finds {measured:.3f} of the {DEPTH} best at its greatest effort, {options.recall:g} is"
            " asked for; choose another search or a lower recall (the vectors are kept)"
        )
    settings = {"faiss": kind.recipe(len(vectors), vectors.dimension)}
    if kind.knob:
        settings[kind.knob] = str(effort)
    return settings, {f"recall_at_{DEPTH}": round(measured, 4), "recall_queries": len(texts)}
