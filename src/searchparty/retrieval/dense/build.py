"""Writes the files of a dense index: passages, vectors in their order, and the manifest that ties both to one encoder."""

from __future__ import annotations

import platform
import shutil
from importlib.metadata import version
from pathlib import Path

from searchparty import __version__
from searchparty.retrieval.building import Progress
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.dense.encoder import Encoder
from searchparty.retrieval.dense.encoding import JOURNAL_FILE, SHARD_PASSAGES, encode_passages
from searchparty.retrieval.dense.vectors import Storage
from searchparty.retrieval.manifest import FORMAT_VERSION, Manifest, file_sizes, save_manifest
from searchparty.retrieval.store import PassageStore, save_passages

NAME = "dense"


def work_folder(target: Path) -> Path:
    """Where the vectors of an index that is not complete yet wait."""
    return target.with_name(f".{target.name}.encoding")


def write_dense_folder(
    corpus: Path,
    folder: Path,
    work: Path,
    encoder: Encoder,
    storage: Storage,
    format: str | None,
    progress: Progress,
    shard_passages: int = SHARD_PASSAGES,
) -> None:
    """Fill the empty `folder` with an index over `corpus`; see `DenseIndex.build`."""
    progress("reading passages", 0, None)
    summary = save_passages(folder, read_corpus(corpus, format), corpus)
    encoded = encode_passages(PassageStore(folder), summary.passages_sha256, encoder, storage, work, progress, shard_passages)
    (work / JOURNAL_FILE).unlink()
    for path in work.iterdir():
        path.rename(folder / path.name)
    shutil.rmtree(work)
    save_manifest(
        folder,
        Manifest(
            format=FORMAT_VERSION,
            retriever=NAME,
            settings={"model": encoder.name, **encoder.settings, "storage": storage},
            corpus=corpus.name,
            passages=summary.passages,
            passages_sha256=summary.passages_sha256,
            ids_sha256=summary.ids_sha256,
            counts={"dimension": encoder.dimension, "largest_norm": encoded.largest_norm},
            built_with={
                "searchparty": __version__,
                "numpy": version("numpy"),
                "torch": version("torch"),
                "python": platform.python_version(),
            },
            files=file_sizes(folder),
        ),
    )
