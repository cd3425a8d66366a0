"""What a retriever over other retrievers passes on."""

from __future__ import annotations

from collections.abc import Iterable

from searchparty.retrieval.types import Retriever


class Wrapping:
    """Closes the retrievers within, and knows its identity only when they do."""

    def __init__(self, within: Iterable[Retriever]) -> None:
        self._within = tuple(within)

    @property
    def identity_known(self) -> bool:
        """Whether every part of the identity is the word of the retriever that it names."""
        return all(getattr(retriever, "identity_known", True) for retriever in self._within)

    def prepare(self) -> None:
        """See `prepare_for_many`."""
        for retriever in self._within:
            prepare_for_many(retriever)

    def close(self) -> None:
        """Close those that can be closed."""
        for retriever in self._within:
            close = getattr(retriever, "close", None)
            if close is not None:
                close()


def prepare_for_many(retriever: Retriever) -> None:
    """Let a retriever that can get ready for many queries do so, in the background."""
    prepare = getattr(retriever, "prepare", None)
    if prepare is not None:
        prepare()
