"""Passages in an index of OpenSearch or Elasticsearch, searched with Lucene's BM25 and English analyser. Extras of these names.

Words are found by the server, so that scores are Lucene's: passage lengths are rounded to one byte, and the analyser is theirs,
not `EnglishAnalyzer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from searchparty.errors import FailureKind
from searchparty.retrieval.retrying import Patience, Retrying, Trouble
from searchparty.retrieval.stores.address import StoreAddress
from searchparty.retrieval.stores.engines import ElasticsearchEngine, Engine, OpenSearchEngine
from searchparty.retrieval.stores.store import MANIFEST_FIELD, StoreManifest
from searchparty.retrieval.types import Hit, Passage

_MOST_WORDS = 1000
"""Of a query; the servers refuse queries of more than 1,024 different ones."""


class LuceneStore:
    """A `Store` in an index of OpenSearch or Elasticsearch."""

    def __init__(self, address: StoreAddress, patience: Patience, token: str | None) -> None:
        """Prepare a client.

        Args:
            address: of the index.
            patience: how hard to try.
            token: `user:password` for OpenSearch, an API key for Elasticsearch.

        Raises:
            UserError: the client's package is not installed, or the token has another form.
        """
        engine = OpenSearchEngine if address.kind == "opensearch" else ElasticsearchEngine
        self.retriever = f"{address.kind}-bm25"
        self._engine: Engine = engine(address, token)
        self._retrying = Retrying(str(address), patience, token)

    def settings(self, k1: float, b: float, mean_words: float) -> dict[str, float | str]:
        """Those of BM25 and the name of the analyser; the server counts words itself."""
        return {"k1": float(k1), "b": float(b), "analyzer": "english"}

    def metadata(self) -> Mapping[str, Any] | None:
        """The metadata of the index; None if there is no such index."""
        return self._retrying.run(self._engine.metadata)[0]

    def create(self, manifest: StoreManifest) -> None:
        """Make the empty index."""
        unsearched = {"type": "text", "index": False}
        similarity = {"type": "BM25", "k1": manifest.settings["k1"], "b": manifest.settings["b"]}
        body = {
            "settings": {"index": {"similarity": {"passages": similarity}}},
            "mappings": {
                "dynamic": "strict",
                "_meta": {MANIFEST_FIELD: manifest.model_dump()},
                "_source": {"excludes": ["contents"]},
                "properties": {
                    "row": {"type": "long"},
                    "id": {"type": "keyword", "index": False, "doc_values": False},
                    "title": unsearched,
                    "text": unsearched,
                    "contents": {"type": "text", "analyzer": "english", "similarity": "passages"},
                },
            },
        }
        self._retrying.run(lambda deadline: self._engine.create(body, deadline))

    def delete(self) -> None:
        """Remove the index."""
        self._retrying.run(self._engine.delete)

    def add(self, manifest: StoreManifest, first_row: int, passages: Sequence[Passage]) -> None:
        """Put passages in as documents whose number is their row."""
        lines: list[dict[str, Any]] = []
        for row, passage in enumerate(passages, start=first_row):
            fields = {"id": passage.id, "title": passage.title, "text": passage.text, "contents": passage.contents}
            lines += [{"index": {"_id": str(row)}}, {"row": row, **fields}]

        def send(deadline: float) -> None:
            for item in self._engine.bulk(lines, deadline)["items"]:
                _refuse(item["index"])

        self._retrying.run(send)

    def finish(self, manifest: StoreManifest) -> None:
        """Make all documents findable and keep the manifest of the whole index."""
        self._retrying.run(lambda deadline: self._engine.keep_metadata({MANIFEST_FIELD: manifest.model_dump()}, deadline))

    def search(self, manifest: StoreManifest, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, in one request. Words of a query after the thousandth are not looked for."""
        bodies = [_query(query, min(k, manifest.passages)) for query in queries]

        def send(deadline: float) -> list[list[Hit]]:
            reply = self._engine.search(bodies, deadline)
            try:
                return _read(reply["responses"], len(queries))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                detail = f"the reply is not that of a search: {type(error).__name__}: {error}"
                raise Trouble(FailureKind.MALFORMED_REPLY, detail, alive=True) from error

        return self._retrying.run(send)[0]

    def close(self) -> None:
        """Close the connections."""
        self._engine.close()


def _query(query: str, k: int) -> dict[str, Any]:
    return {
        "query": {"match": {"contents": " ".join(query.split()[:_MOST_WORDS])}},
        "size": k,
        "sort": [{"_score": "desc"}, {"row": "asc"}],
        "track_scores": True,
        "track_total_hits": False,
    }


def _read(replies: Sequence[Mapping[str, Any]], queries: int) -> list[list[Hit]]:
    """The hits of each query. Raises Trouble for a search that failed, ValueError and its like for another form."""
    for reply in replies:
        _refuse(reply)
    if len(replies) != queries:
        raise ValueError(f"{len(replies)} answers to {queries} queries")
    return [_hits(reply["hits"]["hits"]) for reply in replies]


def _hits(entries: Sequence[Mapping[str, Any]]) -> list[Hit]:
    return [
        Hit(Passage(source["id"], source["title"], source["text"]), rank, float(entry["_score"]))
        for rank, entry in enumerate(entries, start=1)
        for source in (entry["_source"],)
    ]


def _refuse(part: Mapping[str, Any]) -> None:
    """Raise Trouble if a part of a request was not carried out."""
    if error := part.get("error"):
        reason = error.get("reason", error) if isinstance(error, Mapping) else error
        raise Trouble.of_status(int(part.get("status", 500)), str(reason))
    if part.get("timed_out") or part.get("_shards", {}).get("failed"):
        raise Trouble(FailureKind.SERVER_ERROR, "a part of the index did not answer", alive=True)
