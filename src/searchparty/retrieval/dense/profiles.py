"""How texts must be put to each family of encoders, as data. A wrong prefix or pooling costs recall and raises no error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from searchparty.errors import UserError


@dataclass(frozen=True)
class EncoderProfile:
    """What an encoder was trained with, and must therefore be used with.

    Attributes:
        name: by which commands and recipes know it.
        query_prefix, passage_prefix: put before each text; None takes the prompt that the model's own files give, if any.
        pooling: how token vectors become one vector: their mean, the first token's, or as the model's own files say.
        similarity: `cosine` scales every vector to length 1, `dot` leaves it as it is. Both are then compared by dot product.
        max_tokens: longest text in tokens, the rest is cut off; None takes the model's own limit.
    """

    name: str
    query_prefix: str | None
    passage_prefix: str | None
    pooling: Literal["mean", "cls", "model"]
    similarity: Literal["cosine", "dot"]
    max_tokens: int | None

    @property
    def settings(self) -> dict[str, str]:
        """The profile as settings of an index; a prefix is quoted because a space at its end counts."""
        return {
            "profile": self.name,
            "query_prefix": repr(self.query_prefix or ""),
            "passage_prefix": repr(self.passage_prefix or ""),
            "pooling": self.pooling,
            "similarity": self.similarity,
            "max_tokens": "model" if self.max_tokens is None else str(self.max_tokens),
        }


_ALL = (
    EncoderProfile("e5", "query: ", "passage: ", "mean", "cosine", 512),
    EncoderProfile("bge", "Represent this sentence for searching relevant passages: ", "", "cls", "cosine", 512),
    EncoderProfile("contriever", "", "", "mean", "dot", 512),
    EncoderProfile("minilm", "", "", "mean", "cosine", 256),
    EncoderProfile("sentence-transformers", None, None, "model", "cosine", None),
)

PROFILES = {profile.name: profile for profile in _ALL}
"""Profiles by name. The last one trusts the model's own files in everything."""


def find_profile(name: str) -> EncoderProfile:
    """The profile of that name. Raises UserError if there is none."""
    if name not in PROFILES:
        raise UserError(f"no encoder profile {name!r}; choose one of: {', '.join(PROFILES)}")
    return PROFILES[name]
