"""Passages in a Qdrant collection, searched with BM25 as sparse vectors. Needs the extra `qdrant`.

Qdrant orders equal scores in no fixed way, so a few hits more than asked for are taken and put into corpus order.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from searchparty.errors import FailureKind, UserError, missing_package
from searchparty.http_calls import error_line
from searchparty.retrieval.analysis import EnglishAnalyzer
from searchparty.retrieval.retrying import Patience, Retrying, Trouble
from searchparty.retrieval.stores.address import StoreAddress
from searchparty.retrieval.stores.sparse import passage_vector, query_vector
from searchparty.retrieval.stores.store import MANIFEST_FIELD, StoreManifest
from searchparty.retrieval.types import Hit, Passage

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

T = TypeVar("T")

_VECTOR = "bm25"
_MORE_FOR_TIES = 16


class QdrantStore:
    """A `Store` in Qdrant: a server, or a folder in local mode, which is for tests and small corpora."""

    retriever = "qdrant-bm25"

    def __init__(self, address: StoreAddress, patience: Patience, token: str | None) -> None:
        """Prepare a client.

        Args:
            address: of the collection.
            patience: how hard to try; its time-out is that of a whole search, and of each attempt while a collection is filled.
            token: API key of the server.

        Raises:
            UserError: the client's package is not installed, or a local folder cannot be opened.
        """
        self._models, self._client = _client(address, patience, token)
        self._name = address.collection
        self._analyzer = EnglishAnalyzer()
        self._retrying = Retrying(str(address), patience, token)
        # Local mode is not made for several threads.
        self._one_at_a_time = threading.Lock() if address.is_folder else None
        self._token = token

    def settings(self, k1: float, b: float, mean_words: float) -> dict[str, float | str]:
        """Those of the words and of BM25."""
        return {"k1": float(k1), "b": float(b), "mean_words": float(mean_words), "formula": "lucene", **self._analyzer.settings}

    def metadata(self) -> Mapping[str, Any] | None:
        """The metadata of the collection; None if there is no such collection."""
        if not self._call(lambda: self._client.collection_exists(self._name)):
            return None
        return self._call(lambda: self._client.get_collection(self._name)).config.metadata or {}

    def create(self, manifest: StoreManifest) -> None:
        """Make the empty collection."""
        models = self._models
        vectors = {_VECTOR: models.SparseVectorParams(modifier=models.Modifier.IDF)}
        self._call(
            lambda: self._client.create_collection(
                self._name,
                vectors_config={},
                sparse_vectors_config=vectors,
                on_disk_payload=True,
                metadata={MANIFEST_FIELD: manifest.model_dump()},
            )
        )

    def delete(self) -> None:
        """Remove the collection."""
        self._call(lambda: self._client.delete_collection(self._name))

    def add(self, manifest: StoreManifest, first_row: int, passages: Sequence[Passage]) -> None:
        """Put passages in as points whose number is their row."""
        points = [self._point(manifest, row, passage) for row, passage in enumerate(passages, start=first_row)]
        self._call(lambda: self._client.upsert(self._name, points, wait=True))

    def finish(self, manifest: StoreManifest) -> None:
        """Keep the manifest of the whole collection."""
        metadata = {MANIFEST_FIELD: manifest.model_dump()}
        self._call(lambda: self._client.update_collection(self._name, metadata=metadata))
        if (self.metadata() or {}).get(MANIFEST_FIELD) != metadata[MANIFEST_FIELD]:
            raise UserError(f"{self._retrying.address}: this server keeps no metadata of collections; update Qdrant")

    def search(self, manifest: StoreManifest, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, in one request; none for a query without a known word."""
        models = self._models
        requests = [
            models.QueryRequest(
                query=models.SparseVector(indices=list(vector), values=list(vector.values())),
                using=_VECTOR,
                limit=k + _MORE_FOR_TIES,
                with_payload=True,
            )
            for vector in (query_vector(self._analyzer.words(query)) for query in queries)
        ]
        asked = [place for place, request in enumerate(requests) if request.query.indices]
        found: list[list[Hit]] = [[] for _ in queries]
        if asked:
            wanted = [requests[place] for place in asked]
            replies, _ = self._retrying.run(lambda deadline: self._once(lambda: self._query(wanted, deadline)))
            for place, reply in zip(asked, replies, strict=True):
                found[place] = _hits(reply.points, k)
        return found

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def _point(self, manifest: StoreManifest, row: int, passage: Passage) -> Any:
        words, settings = self._analyzer.words(passage.contents), manifest.settings
        vector = passage_vector(words, float(settings["k1"]), float(settings["b"]), float(settings["mean_words"]))
        sparse = self._models.SparseVector(indices=list(vector), values=list(vector.values()))
        payload = {"id": passage.id, "title": passage.title, "text": passage.text}
        return self._models.PointStruct(id=row, vector={_VECTOR: sparse} if vector else {}, payload=payload)

    def _query(self, requests: Sequence[Any], deadline: float) -> Any:
        """One attempt, which may take what is left until the deadline, in whole seconds as the client counts them."""
        left = max(1, math.ceil(deadline - time.monotonic()))
        return self._client.query_batch_points(self._name, requests=requests, timeout=left)

    def _call(self, call: Callable[[], T]) -> T:
        return self._retrying.run(lambda deadline: self._once(call))[0]

    def _once(self, call: Callable[[], T]) -> T:
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            if self._one_at_a_time is None:
                return call()
            with self._one_at_a_time:
                return call()
        except UnexpectedResponse as error:
            raise Trouble.of_status(error.status_code or 500, error_line(error.content, self._token)) from error
        except ResponseHandlingException as error:
            raise _trouble(error.source) from error
        except ValueError as error:
            raise _trouble(error) from error


def _trouble(source: Exception) -> Trouble:
    """What went wrong between client and server."""
    detail = f"{type(source).__name__}: {source}"
    if isinstance(source, httpx.TimeoutException):
        return Trouble(FailureKind.TIMEOUT, detail)
    if isinstance(source, httpx.TransportError):
        return Trouble(FailureKind.UNREACHABLE, detail)
    return Trouble(FailureKind.MALFORMED_REPLY, detail, alive=True)


def _client(address: StoreAddress, patience: Patience, token: str | None) -> tuple[Any, QdrantClient]:
    try:
        from qdrant_client import QdrantClient, models
    except ImportError:
        raise missing_package("qdrant-client", "qdrant", str(address)) from None
    if not address.is_folder:
        seconds = max(1, round(patience.timeout))
        return models, QdrantClient(url=address.place, api_key=token, timeout=seconds, check_compatibility=False)
    try:
        return models, QdrantClient(path=address.place)
    except (RuntimeError, OSError) as error:
        raise UserError(f"{address}: the folder cannot be opened ({' '.join(str(error).split())})") from error


def _hits(points: Sequence[Any], k: int) -> list[Hit]:
    best = sorted(points, key=lambda point: (-point.score, point.id))[:k]
    return [
        Hit(Passage(point.payload["id"], point.payload["title"], point.payload["text"]), rank, float(point.score))
        for rank, point in enumerate(best, start=1)
    ]
