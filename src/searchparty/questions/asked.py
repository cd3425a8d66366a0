"""A question that a person or a client asks, which comes from no file."""

from __future__ import annotations

from hashlib import blake2b

from searchparty.questions.types import Question

DATASET = "ask"


def asked_question(text: str, seed: int) -> Question:
    """The question, under an id that text and seed decide.

    No file gives it an id, and the seeds of its calls hang on one: so whoever asks the same with the same seed, on the command
    line or of a server, lets the same tokens be drawn.
    """
    digest = blake2b(f"{seed}\x1f{text}".encode("utf-8", "replace"), digest_size=6).hexdigest()
    return Question(digest, text, (), DATASET)
