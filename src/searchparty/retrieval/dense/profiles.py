"""How texts must be put to each family of encoders, as data. A wrong prefix or pooling costs recall and raises no error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from searchparty.errors import UserError

Pooling = Literal["mean", "cls", "model"]
Similarity = Literal["cosine", "dot"]
_NAMES = ("profile", "query_prefix", "passage_prefix", "pooling", "similarity", "max_tokens")


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
    pooling: Pooling
    similarity: Similarity
    max_tokens: int | None

    @property
    def settings(self) -> dict[str, str]:
        """The profile as settings of an index; a prefix is a JSON string because a space at its end counts."""
        return {
            "profile": self.name,
            "query_prefix": json.dumps(self.query_prefix or ""),
            "passage_prefix": json.dumps(self.passage_prefix or ""),
            "pooling": self.pooling,
            "similarity": self.similarity,
            "max_tokens": "model" if self.max_tokens is None else str(self.max_tokens),
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, float | str]) -> EncoderProfile:
        """The profile that an index was built with, as it was then. Raises UserError if the settings hold none."""
        try:
            words = {name: str(settings[name]) for name in _NAMES}
            pooling, similarity, limit = words["pooling"], words["similarity"], words["max_tokens"]
            if pooling not in get_args(Pooling) or similarity not in get_args(Similarity):
                raise ValueError(f"pooling {pooling!r}, similarity {similarity!r}")
            return cls(
                words["profile"],
                str(json.loads(words["query_prefix"])),
                str(json.loads(words["passage_prefix"])),
                cast(Pooling, pooling),
                cast(Similarity, similarity),
                None if limit == "model" else int(limit),
            )
        except (KeyError, ValueError) as error:
            raise UserError(f"the index does not say how its encoder is used ({error}); build it again") from None


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
