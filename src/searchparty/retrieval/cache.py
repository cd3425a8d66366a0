"""Records what a retriever answers, and replays it later without the retriever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

from searchparty.errors import Failure, FailureKind, ServiceFailure, UserError
from searchparty.retrieval.cache_file import CacheFile
from searchparty.retrieval.types import Hit, Retriever
from searchparty.retrieval.wrapping import Wrapping


class CacheMode(StrEnum):
    """When the retriever behind a cache is asked."""

    RECORD = "record"
    """Always; the answer takes the place of a recorded one."""
    RECORD_MISSING = "record-missing"
    """Where there is no recorded answer yet."""
    REPLAY = "replay"
    """Never: it need not even exist. A query without a recorded answer is an error."""


class RecordingRetriever(Wrapping):
    """A `Retriever` that records the answers of another one. Failures are passed on and not recorded.

    The identity is that of the retriever behind it, since its answers are: a run may go on with the cache or without it.
    """

    def __init__(self, retriever: Retriever, cache: CacheFile, *, ask_again: bool = False) -> None:
        """Args:
        retriever: whom to ask.
        cache: where answers are looked up and kept; closed together with the retriever.
        ask_again: ask also for what is recorded, and record the new answer.
        """
        super().__init__([retriever])
        self._retriever = retriever
        self._cache = cache
        self._ask_again = ask_again

    @property
    def identity(self) -> str:
        """The identity of the retriever behind it."""
        return self._retriever.identity

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, recorded or new. What is returned is what a replay will return.

        Raises:
            ServiceFailure: from the retriever, or because it answers but does not say who it is.
            UserError: the cache cannot be written.
        """
        found = {} if self._ask_again or not self.identity_known else self._cache.find(self.identity, queries, k)
        missing = [query for query in dict.fromkeys(queries) if query not in found]
        if missing:
            answers = dict(zip(missing, self._retriever.search(missing, k), strict=True))
            if not self.identity_known:
                detail = f"{self.identity}: answers searches but not /health, so its answers cannot be recorded under a name"
                raise ServiceFailure(Failure("retriever", FailureKind.UNREACHABLE, detail))
            self._cache.keep(self.identity, k, answers, replace=self._ask_again)
            found |= self._cache.find(self.identity, missing, k)
        return [list(found[query]) for query in queries]

    def close(self) -> None:
        """Close the retriever and the file."""
        super().close()
        self._cache.close()


class ReplayedRetriever:
    """A `Retriever` that gives recorded answers only, under the identity of the retriever that gave them."""

    def __init__(self, cache: CacheFile, identity: str | None = None) -> None:
        """Choose whose answers are replayed.

        Args:
            cache: the recorded answers; closed with this retriever.
            identity: of the recorded retriever; None if there is only one.

        Raises:
            UserError: the cache does not hold that retriever, or holds several and none was named.
        """
        recorded = list(cache.contents().answers)
        if identity is None and len(recorded) == 1:
            identity = recorded[0]
        if identity not in recorded:
            asked = "none is named" if identity is None else f"{identity!r} is not among them"
            held = " and ".join(map(repr, recorded)) or "none"
            raise UserError(f"{cache.path}: retrievers recorded here: {held}; {asked}: name one as retriever.cache.identity")
        self.identity = identity
        self._cache = cache

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The recorded hits of each query. Raises UserError if one was never asked with this `k`."""
        found = self._cache.find(self.identity, queries, k)
        missing = [query for query in queries if query not in found]
        if missing:
            raise UserError(
                f"{self._cache.path}: no recorded answer for k = {k} and the query {missing[0][:200]!r}"
                f" ({len(missing)} of {len(queries)} are missing); replay the recorded run with its own recipe,"
                " or ask the retriever with mode: record-missing"
            )
        return [list(found[query]) for query in queries]

    def close(self) -> None:
        """Close the file."""
        self._cache.close()


def open_through_cache(
    open_retriever: Callable[[], Retriever], path: Path, mode: CacheMode, identity: str | None = None
) -> Retriever:
    """A retriever behind the cache at `path`, or its replay.

    Args:
        open_retriever: called unless the mode is `replay`.
        path: the file; made if something is to be recorded.
        mode: when the retriever is asked.
        identity: for `replay`: which of several recorded retrievers answers.

    Raises:
        UserError: the cache or the retriever cannot be opened.
    """
    cache = CacheFile(path, create=mode is not CacheMode.REPLAY)
    try:
        if mode is CacheMode.REPLAY:
            return ReplayedRetriever(cache, identity)
        return RecordingRetriever(open_retriever(), cache, ask_again=mode is CacheMode.RECORD)
    except BaseException:
        cache.close()
        raise
