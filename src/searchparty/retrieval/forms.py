"""The forms of answers that the server sends, as bytes: each query's answer once, and what stands around the answers.

They are those that the client's dialects read, see `dialects`. Knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from searchparty.retrieval.dialect import document_from_passage
from searchparty.retrieval.dialects import NATIVE_VERSION
from searchparty.retrieval.types import Hit

_PART = b"\n"
"""Between two parts of one answer; JSON without indentation holds no line end."""


@dataclass(frozen=True, eq=False)
class Form:
    """How answers are written.

    Attributes:
        answer: the hits of one query, as it can be remembered.
        reply: the whole body out of the queries and their answers.
    """

    answer: Callable[[Sequence[Hit]], bytes]
    reply: Callable[[Sequence[str], Sequence[bytes]], bytes]


def _each(entry: Callable[[Hit], Any]) -> Callable[[Sequence[Hit]], bytes]:
    return lambda hits: orjson.dumps([entry(hit) for hit in hits])


def _around(opening: bytes, closing: bytes) -> Callable[[Sequence[str], Sequence[bytes]], bytes]:
    return lambda queries, answers: b"".join((opening, b",".join(answers), closing))


def _document(hit: Hit) -> dict[str, str]:
    return document_from_passage(hit.passage)


def _title_and_text(hit: Hit) -> str:
    return f"{hit.passage.title}\n{hit.passage.text}"


def _number_and_text(hit: Hit) -> str:
    """With the id in front, if it is a number: clients of this form take numbers off."""
    number = f"{hit.passage.id}\t" if hit.passage.id.isascii() and hit.passage.id.isdecimal() else ""
    return number + _title_and_text(hit)


def _documents_and_scores(hits: Sequence[Hit]) -> bytes:
    return _PART.join((_each(_document)(hits), orjson.dumps([hit.score for hit in hits])))


def _pair_of_lists(queries: Sequence[str], answers: Sequence[bytes]) -> bytes:
    documents, scores = zip(*(answer.split(_PART) for answer in answers), strict=True) if answers else ((), ())
    return b"".join((b"[[", b",".join(documents), b"],[", b",".join(scores), b"]]"))


def _questions(queries: Sequence[str], answers: Sequence[bytes]) -> bytes:
    entries = (
        b'{"question":%b,"top_k_docs":%b}' % (orjson.dumps(query), answer)
        for query, answer in zip(queries, answers, strict=True)
    )
    return b"".join((b"[", b",".join(entries), b"]"))


def _queries(queries: Sequence[str], answers: Sequence[bytes]) -> bytes:
    return b"".join((b'{"queries":', orjson.dumps(list(queries)), b',"answers":[', b",".join(answers), b"]}"))


SCORED = Form(_each(lambda hit: {"document": _document(hit), "score": hit.score}), _around(b'{"result":[', b"]}"))
"""Search-R1's with scores."""
BARE = Form(_each(_document), _around(b'{"result":[', b"]}"))
"""Search-R1's without."""
NATIVE = Form(
    _each(lambda hit: {"id": hit.passage.id, "title": hit.passage.title, "text": hit.passage.text, "score": hit.score}),
    _around(b'{"version":%d,"results":[' % NATIVE_VERSION, b"]}"),
)
QUESTIONS = Form(_each(_title_and_text), _questions)
"""MAO-ARAG's authors'."""
QUERIES = Form(_each(_number_and_text), _queries)
"""R1-Searcher's."""
BATCH_SCORED = Form(_documents_and_scores, _pair_of_lists)
"""ReSearch's with scores."""
BATCH_BARE = Form(_each(_document), _around(b"[", b"]"))
"""ReSearch's without."""
