"""One way to open any retriever: an index folder by what its manifest says, a server or a collection by its address."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from searchparty.errors import UserError
from searchparty.http_calls import TOKEN_VARIABLE
from searchparty.retrieval.bm25 import NAME as BM25
from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.dense.build import NAME as DENSE
from searchparty.retrieval.manifest import Manifest, load_manifest
from searchparty.retrieval.stores.address import STORE_PREFIXES
from searchparty.retrieval.types import Retriever

if TYPE_CHECKING:
    from searchparty.retrieval.dense.index import DenseIndex
    from searchparty.retrieval.retrying import Patience


def open_index(
    folder: Path | str, *, model: str | None = None, device: str | None = None, search: str | None = None
) -> BM25Index | DenseIndex:
    """Open an index folder.

    Args:
        folder: made by `searchparty index build`.
        model: for a dense index, where its encoder is now; None looks where it was when the index was built.
        device: for a dense index, `cpu`, which None means too, or one or several cards such as `cuda:0,cuda:1`.
        search: for a dense index, `exact` to pass over a FAISS index that is there.

    Raises:
        UserError: there is none, it cannot be used, or it has no use for what is given.
    """
    path = Path(folder)
    manifest = load_manifest(path)
    if manifest.retriever == DENSE:
        return _open_dense(path, manifest, model, device, search)
    if manifest.retriever != BM25:
        raise UserError(
            f"{path}: is an index for the retriever {manifest.retriever!r}, which this program does not have; update it"
        )
    if (model, device, search) != (None, None, None):
        raise UserError(f"{path}: is a {BM25} index, for which a model, a device or a way to search means nothing; remove it")
    return BM25Index(path)


def is_address(spec: Path | str) -> bool:
    """Whether a server or a collection is meant, and not a folder."""
    return str(spec).startswith(("http://", "https://", *STORE_PREFIXES))


def open_retriever(
    spec: Path | str,
    *,
    dialect: str = "search-r1",
    patience: Patience | None = None,
    model: str | None = None,
    device: str | None = None,
    search: str | None = None,
) -> Retriever:
    """Open an index folder, a server if `spec` begins with http:// or https://, or a collection in a search server.

    Args:
        spec: folder or address.
        dialect: for a server: how it is asked, a name out of `DIALECTS`.
        patience: for a server: how hard it is tried.
        model, device, search: for an index folder, see `open_index`.

    Raises:
        UserError: there is no such index or collection, or the address is none.
        ServiceFailure: a search server cannot be asked for its collection.
    """
    if is_address(spec) and (model, device, search) != (None, None, None):
        raise UserError(f"{spec}: is a server, which has a model, a device and a way to search of its own; remove them here")
    if str(spec).startswith(STORE_PREFIXES):
        from searchparty.retrieval.stores.opening import open_store_retriever

        return open_store_retriever(str(spec), patience, os.environ.get(TOKEN_VARIABLE))
    if is_address(spec):
        from searchparty.retrieval.remote import RemoteRetriever

        return RemoteRetriever(str(spec), dialect=dialect, patience=patience, token=os.environ.get(TOKEN_VARIABLE))
    return open_index(spec, model=model, device=device, search=search)


def _open_dense(folder: Path, manifest: Manifest, model: str | None, device: str | None, search: str | None) -> DenseIndex:
    # Imported here because torch takes longer to import than any other index takes to open.
    from searchparty.retrieval.dense.index import DenseIndex
    from searchparty.retrieval.dense.profiles import EncoderProfile
    from searchparty.retrieval.dense.sentence_encoder import SentenceEncoder

    devices = (device or "cpu").split(",")
    profile = EncoderProfile.from_settings(manifest.settings)
    encoder = SentenceEncoder(model or str(manifest.settings["model"]), profile, device=devices[0], precision="float32")
    return DenseIndex(folder, encoder, search=search, devices=devices)
