"""Requests to the server, checked: the bodies of all dialects in `dialects`, by the path to which they are posted.

A number of hits of null or 0, or none, means the server's default. Unknown fields are ignored, except in the native dialect,
where they would be misspelt or of a later version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from searchparty.http_server.asgi import bad_request, flag, json_object
from searchparty.retrieval.dialects import NATIVE_VERSION
from searchparty.retrieval.forms import BARE, BATCH_BARE, BATCH_SCORED, NATIVE, QUERIES, QUESTIONS, SCORED, Form

MOST_DOCUMENTS = 100_000
"""Per request, queries times hits: bounds the memory one request can take."""


@dataclass(frozen=True)
class RetrieveRequest:
    """A checked request, and the form in which it is answered. `k` is at least 1, at most the number of passages if known."""

    queries: list[str]
    k: int
    form: Form


@dataclass(frozen=True)
class _Asked:
    """A request that is a JSON object, with the defaults of the server."""

    record: dict[str, Any]
    default_k: int
    passages: int | None

    def request(self, queries: str, k: str, form: Form) -> RetrieveRequest:
        """The request whose queries and number of hits stand in these fields."""
        texts = self.record.get(queries)
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise bad_request(f"{queries!r} must be a list of strings")
        return RetrieveRequest(texts, self._k(k, len(texts)), form)

    def _k(self, name: str, queries: int) -> int:
        k = self.record.get(name)
        if k is not None and (isinstance(k, bool) or not isinstance(k, int)):
            raise bad_request(f"{name!r} must be a whole number or null")
        if k is not None and k < 0:
            raise bad_request(f"{name!r} must not be negative, it is {k}")
        k = k or self.default_k
        k = k if self.passages is None else min(k, self.passages)
        if queries * k > MOST_DOCUMENTS:
            raise bad_request(
                f"{queries} queries times {name} {k} is more than {MOST_DOCUMENTS} documents; ask for less at a time"
            )
        return k


def parse_request(path: str, body: bytes, default_k: int, passages: int | None) -> RetrieveRequest:
    """Check the body of a request.

    Args:
        path: one of `PATHS`.
        body: as it came.
        default_k: hits where the request names none.
        passages: number of passages in the corpus, None if it is not known.

    Raises:
        RequestError: 400 with what is wrong.
    """
    return _PARSERS[path](_Asked(json_object(body), default_k, passages))


def _retrieve(asked: _Asked) -> RetrieveRequest:
    """Search-R1's, or with one text as `query` that of its descendants."""
    form = SCORED if flag(asked.record, "return_scores") else BARE
    query = asked.record.get("query")
    if "queries" not in asked.record and isinstance(query, str):
        asked = _Asked({**asked.record, "queries": [query]}, asked.default_k, asked.passages)
    return asked.request("queries", "topk", form)


def _search(asked: _Asked) -> RetrieveRequest:
    """The native one, or with `questions` that of MAO-ARAG's authors."""
    if "questions" in asked.record:
        return asked.request("questions", "N", QUESTIONS)
    version = asked.record.get("version", NATIVE_VERSION)
    if version != NATIVE_VERSION or isinstance(version, bool):
        raise bad_request(f"'version' must be {NATIVE_VERSION}, the only one that this server speaks")
    if unknown := sorted(asked.record.keys() - {"version", "queries", "k"}):
        raise bad_request(f"unknown field {unknown[0]!r}; there are version, queries and k")
    return asked.request("queries", "k", NATIVE)


def _batch_search(asked: _Asked) -> RetrieveRequest:
    return asked.request("query", "top_n", BATCH_SCORED if flag(asked.record, "return_score") else BATCH_BARE)


def _queries(asked: _Asked) -> RetrieveRequest:
    return asked.request("queries", "k", QUERIES)


_PARSERS: Mapping[str, Callable[[_Asked], RetrieveRequest]] = {
    "/retrieve": _retrieve,
    "/search": _search,
    "/batch_search": _batch_search,
    "/queries": _queries,
}
PATHS = tuple(_PARSERS)
"""Where requests are posted."""
