"""Opens a collection in a search server by its address."""

from __future__ import annotations

from pathlib import Path

from searchparty.errors import UserError
from searchparty.http_calls import TOKEN_VARIABLE
from searchparty.retrieval.retrying import Patience
from searchparty.retrieval.stores.address import parse_store_address
from searchparty.retrieval.stores.store import Store, StoreRetriever


def open_store(address: str, patience: Patience | None = None, token: str | None = None) -> Store:
    """The place of a collection, whether it is there or not.

    Args:
        address: see `parse_store_address`.
        patience: how hard the server is tried.
        token: API key; for OpenSearch `user:password`.

    Raises:
        UserError: it is no address, or the client's package is not installed.
    """
    place = parse_store_address(address, TOKEN_VARIABLE)
    patience = patience or Patience()
    if place.kind == "qdrant":
        from searchparty.retrieval.stores.qdrant import QdrantStore

        return QdrantStore(place, patience, token)
    from searchparty.retrieval.stores.lucene import LuceneStore

    return LuceneStore(place, patience, token)


def open_store_retriever(address: str, patience: Patience | None = None, token: str | None = None) -> StoreRetriever:
    """The retriever over a filled collection. Raises what `open_store` and `StoreRetriever` raise."""
    place = parse_store_address(address, TOKEN_VARIABLE)
    if place.is_folder and not Path(place.place).is_dir():
        raise UserError(f"{place.place}: no such folder; make the collection with: searchparty store fill CORPUS {address}")
    store = open_store(address, patience, token)
    try:
        return StoreRetriever(store, address)
    except BaseException:
        store.close()
        raise
