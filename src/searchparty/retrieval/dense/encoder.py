"""What every encoder can do, and the checks that what it gives can be searched. Knows no library and no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from searchparty.errors import UserError

SAME_VECTOR = 0.1
"""Largest distance, relative to its length, between two encodings of one text by one model: room for half-precision arithmetic
and for storage in 8 bits. Vectors of different models, or of different texts, are several times further apart."""


class Encoder(Protocol):
    """Turns texts into vectors. Safe to call from one thread at a time."""

    @property
    def name(self) -> str:
        """The model, in the words by which it can be loaded again."""

    @property
    def digest(self) -> str:
        """What the model is, wherever it lies."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How texts are put to the model; an index is only opened by an encoder with equal settings."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, float32 [queries, dimension]."""

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of the contents of passages, float32 [texts, dimension]."""


def checked(vectors: NDArray[np.float32], texts: int, encoder: Encoder, first: int = 0) -> NDArray[np.float32]:
    """The vectors of `texts` texts if they are what the encoder promises.

    Args:
        first: row of the first text, for the message.

    Raises:
        UserError: another shape, or a number that is none (NaN, infinity).
    """
    if vectors.shape != (texts, encoder.dimension):
        raise UserError(
            f"{encoder.name}: gave vectors of shape {list(vectors.shape)} for {texts} texts, [{texts}, {encoder.dimension}] is"
            " needed; check the model's files"
        )
    unusable = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(unusable):
        raise UserError(
            f"{encoder.name}: the vector of text {first + int(unusable[0])} holds NaN or infinity ({len(unusable)} of {texts}"
            " texts); encode in float32, or check the model's files"
        )
    return np.ascontiguousarray(vectors, dtype=np.float32)
