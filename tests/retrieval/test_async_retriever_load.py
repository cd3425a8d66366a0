"""What a failing retriever is spared: a batch that fails is taken apart only so far."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from searchparty.errors import Failure, FailureKind, ServiceFailure
from searchparty.retrieval.batching import AsyncRetriever
from searchparty.retrieval.types import Hit


class Failing:
    """Fails every search that holds a bad query, or every search."""

    identity = "failing"

    def __init__(self, bad: str | None) -> None:
        self.bad = bad
        self.searches = 0
        self.closed = False

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.searches += 1
        if self.bad is None or self.bad in queries:
            raise ServiceFailure(Failure("retriever", FailureKind.SERVER_ERROR, "HTTP 500"))
        return [[] for _ in queries]

    def close(self) -> None:
        self.closed = True


async def ask_all(retriever: AsyncRetriever, count: int) -> list[object]:
    return await asyncio.gather(*(retriever.search(str(number), 3) for number in range(count)), return_exceptions=True)


async def test_one_bad_query_among_256_fails_alone_after_few_searches() -> None:
    failing = Failing("77")
    front = AsyncRetriever(failing)
    results = await ask_all(front, 256)
    await front.close()
    assert [number for number, result in enumerate(results) if isinstance(result, ServiceFailure)] == [77]
    assert failing.searches <= 2 + 2 * 8 + 1


async def test_a_server_that_fails_throughout_is_asked_a_bounded_number_of_times() -> None:
    failing = Failing(None)
    front = AsyncRetriever(failing)
    results = await ask_all(front, 256)
    await front.close()
    assert all(isinstance(result, ServiceFailure) for result in results)
    assert failing.searches <= 2 + 32 * 2
    assert failing.closed
