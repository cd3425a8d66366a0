"""The wire form of passages that Search-R1 made common: `{"id", "contents"}` with a title line and text in one string.

Used by corpora, by the server and by its client. Pure functions; no files, no network.
"""

from __future__ import annotations

import hashlib
from typing import Any

from searchparty.retrieval.types import Passage


def split_contents(contents: str) -> tuple[str, str]:
    """Title and text of `contents`: the first line is the title, later line ends belong to the text.

    One pair of double quotes around the title is taken off, if both are there: one-word titles are often bare. Quotes inside
    stay as they are, doubled ones too, so that `Passage.contents` gives a quoted original back unchanged. Without a line end,
    all is text.
    """
    title, line_end, text = contents.partition("\n")
    if not line_end:
        return "", contents
    if len(title) >= 2 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return title, text


def passage_from_document(document: Any) -> Passage:
    """Read one document of a reply or one record of a corpus: `title` and `text`, or else `contents`; other fields are ignored.

    An id may be a number. A document without an id, which some servers send, gets one derived from what it says.

    Raises:
        ValueError: the document has another form; the message says what is missing.
    """
    if not isinstance(document, dict):
        raise ValueError(f"an object is needed for a passage, found {type(document).__name__}")
    if "text" in document:
        title, text = document.get("title"), document["text"]
        title = "" if title is None else title
    elif "contents" in document:
        if not isinstance(document["contents"], str):
            raise ValueError("'contents' must be a string")
        title, text = split_contents(document["contents"])
    else:
        raise ValueError("neither 'text' nor 'contents' is there")
    if not isinstance(title, str) or not isinstance(text, str):
        raise ValueError("'title' and 'text' must be strings")
    passage_id = document.get("id", document.get("_id"))
    if passage_id is None:
        passage_id = "sha256:" + hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:16]
    if isinstance(passage_id, bool) or not isinstance(passage_id, str | int):
        raise ValueError("'id' must be a string or a whole number")
    return Passage(str(passage_id), title, text)


def document_from_passage(passage: Passage) -> dict[str, str]:
    """The document that a server sends."""
    return {"id": passage.id, "contents": passage.contents}
