"""The request and reply forms in which search-RL projects ask a retrieval server, one `Dialect` each. No network.

`search-r1`, of Search-R1, at /retrieve:
    `{"queries": […], "topk": k, "return_scores": true}` → `{"result": [[{"document", "score"}, …], …]}`
`single-query`, of its descendants, at /retrieve:
    `{"query": q, "topk": k, "return_scores": true}` → the list as `result` or `results`, nested or flat, with scores or bare
`questions`, of MAO-ARAG's authors, at /search:
    `{"questions": […], "N": k}` → `[{"question", "top_k_docs": ["title\\ntext", …]}, …]`
`batch-search`, of ReSearch and ReCall, at /batch_search:
    `{"query": […], "top_n": k, "return_score": true}` → `[[[document, …], …], [[score, …], …]]`
`queries`, of R1-Searcher, at /queries:
    `{"queries": […], "k": k}` → `{"answers": [["id\\ttext", …], …]}`
`native`, of this package's server, at /search:
    `{"version": 1, "queries": […], "k": k}` → `{"version": 1, "results": [[{"id", "title", "text", "score"}, …], …]}`

Where a reply carries no scores, the hit of rank r gets 1/r.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from searchparty.retrieval.dialect import passage_from_document, split_contents
from searchparty.retrieval.types import Hit, Passage

NATIVE_VERSION = 1
"""Version of the native request and reply."""

Scored = list[tuple[Passage, float]]


@dataclass(frozen=True)
class Dialect:
    """How one kind of server is asked.

    Attributes:
        name: what a recipe calls it.
        path: where requests are posted.
        request: the JSON body for queries and k.
        read: passages and scores per query out of the decoded reply; raises ValueError saying what is not in the agreed form.
        one_by_one: a request holds one query only.
    """

    name: str
    path: str
    request: Callable[[Sequence[str], int], dict[str, Any]]
    read: Callable[[Any], list[Scored]]
    one_by_one: bool = False

    def hits(self, reply: Any, queries: int, k: int) -> list[list[Hit]]:
        """At most `k` hits for each of the `queries` queries. Raises ValueError if any part of the reply has another form."""
        results = self.read(reply)
        if len(results) != queries:
            raise ValueError(f"{len(results)} results for {queries} queries")
        return [[Hit(passage, rank, score) for rank, (passage, score) in enumerate(result[:k], start=1)] for result in results]


def _read_search_r1(reply: Any) -> list[Scored]:
    return [[_read_entry(entry) for entry in _list(entries, "each result")] for entries in _field(reply, "result")]


def _read_single_query(reply: Any) -> list[Scored]:
    entries = _field(reply, "results" if isinstance(reply, dict) and "results" in reply else "result")
    if len(entries) == 1 and isinstance(entries[0], list):
        entries = entries[0]
    if all(isinstance(entry, dict) and "document" in entry for entry in entries):
        return [[_read_entry(entry) for entry in entries]]
    return [_by_rank([passage_from_document(entry) for entry in entries])]


def _read_questions(reply: Any) -> list[Scored]:
    return [_by_rank([_untitled(text) for text in _field(answer, "top_k_docs")]) for answer in _list(reply, "the reply")]


def _read_batch_search(reply: Any) -> list[Scored]:
    if not isinstance(reply, list) or len(reply) != 2:
        raise ValueError("a pair of documents and scores is needed")
    documents, scores = _list(reply[0], "the documents"), _list(reply[1], "the scores")
    if [len(_list(part, "each part")) for part in documents] != [len(_list(part, "each part")) for part in scores]:
        raise ValueError("there must be one score per document")
    return [
        [(passage_from_document(document), _score(score)) for document, score in zip(*parts, strict=True)]
        for parts in zip(documents, scores, strict=True)
    ]


def _read_queries(reply: Any) -> list[Scored]:
    return [_by_rank([_numbered(text) for text in _list(texts, "each answer")]) for texts in _field(reply, "answers")]


def _read_native(reply: Any) -> list[Scored]:
    results = _field(reply, "results")
    if reply.get("version") != NATIVE_VERSION:
        raise ValueError(f"version {NATIVE_VERSION} is needed, found {reply.get('version')!r}")
    return [
        [(passage_from_document(entry), _score(entry.get("score"))) for entry in _list(entries, "each result")]
        for entries in results
    ]


def _read_entry(entry: Any) -> tuple[Passage, float]:
    if not isinstance(entry, dict) or "document" not in entry:
        raise ValueError("each entry must be an object with 'document' and 'score'")
    return passage_from_document(entry["document"]), _score(entry.get("score"))


def _score(score: Any) -> float:
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise ValueError("'score' must be a number")
    return float(score)


def _untitled(text: Any) -> Passage:
    """A passage that came as title line and text, without an id."""
    if not isinstance(text, str):
        raise ValueError(f"each passage must be a string, found {type(text).__name__}")
    return passage_from_document({"contents": text})


def _numbered(text: Any) -> Passage:
    """A passage that came as number, tab, title line and text; only a tab tells a number from a text that begins with one."""
    found = re.match(r"(\d+)\t", text) if isinstance(text, str) else None
    if found is None:
        return _untitled(text)
    return Passage(found[1], *split_contents(text[found.end() :]))


def _by_rank(passages: list[Passage]) -> Scored:
    return [(passage, 1.0 / rank) for rank, passage in enumerate(passages, start=1)]


def _field(record: Any, name: str) -> list[Any]:
    if not isinstance(record, dict) or not isinstance(record.get(name), list):
        raise ValueError(f"an object with a list {name!r} is needed")
    return list(record[name])


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} must be a list, found {type(value).__name__}")
    return value


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "search-r1",
            "/retrieve",
            lambda queries, k: {"queries": list(queries), "topk": k, "return_scores": True},
            _read_search_r1,
        ),
        Dialect(
            "single-query",
            "/retrieve",
            lambda queries, k: {"query": queries[0], "topk": k, "return_scores": True},
            _read_single_query,
            one_by_one=True,
        ),
        Dialect("questions", "/search", lambda queries, k: {"questions": list(queries), "N": k}, _read_questions),
        Dialect(
            "batch-search",
            "/batch_search",
            lambda queries, k: {"query": list(queries), "top_n": k, "return_score": True},
            _read_batch_search,
        ),
        Dialect("queries", "/queries", lambda queries, k: {"queries": list(queries), "k": k}, _read_queries),
        Dialect(
            "native",
            "/search",
            lambda queries, k: {"version": NATIVE_VERSION, "queries": list(queries), "k": k},
            _read_native,
        ),
    )
}
"""Every dialect by its name."""
