"""One way to open any retriever: an index folder by what its manifest says, a server or a collection by its address."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from searchparty.errors import UserError
from searchparty.retrieval.bm25 import NAME as BM25
from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.manifest import load_manifest
from searchparty.retrieval.stores.address import STORE_PREFIXES
from searchparty.retrieval.types import Retriever

if TYPE_CHECKING:
    from searchparty.retrieval.retrying import Patience

TOKEN_VARIABLE = "SEARCHPARTY_RETRIEVER_TOKEN"
"""Environment variable with the bearer token that a retrieval server asks for."""


def open_index(folder: Path | str) -> BM25Index:
    """Open an index folder. Raises UserError if there is none or it cannot be used."""
    path = Path(folder)
    manifest = load_manifest(path)
    if manifest.retriever != BM25:
        raise UserError(
            f"{path}: is an index for the retriever {manifest.retriever!r}, which this program does not have; update it"
        )
    return BM25Index(path)


def open_retriever(spec: Path | str, *, dialect: str = "search-r1", patience: Patience | None = None) -> Retriever:
    """Open an index folder, a server if `spec` begins with http:// or https://, or a collection in a search server.

    Args:
        spec: folder or address.
        dialect: for a server: how it is asked, a name out of `DIALECTS`.
        patience: for a server: how hard it is tried.

    Raises:
        UserError: there is no such index or collection, or the address is none.
        ServiceFailure: a search server cannot be asked for its collection.
    """
    if str(spec).startswith(STORE_PREFIXES):
        from searchparty.retrieval.stores.opening import open_store_retriever

        return open_store_retriever(str(spec), patience, os.environ.get(TOKEN_VARIABLE))
    if str(spec).startswith(("http://", "https://")):
        from searchparty.retrieval.remote import RemoteRetriever

        return RemoteRetriever(str(spec), dialect=dialect, patience=patience, token=os.environ.get(TOKEN_VARIABLE))
    return open_index(spec)
