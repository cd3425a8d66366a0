"""Many callers, one retriever: merging, isolation of failures, cancellation, closing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest
from retrieval_factories import FunctionRetriever, ids

from searchparty.errors import Failure, FailureKind, ServiceFailure, UserError
from searchparty.retrieval.batching import AsyncRetriever


class Gate:
    """Holds the retriever's thread until it is opened; tells when the thread has come."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, queries: Sequence[str]) -> None:
        self.reached.set()
        assert self.open.wait(10)

    async def wait_until_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 10)


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


async def start(front: AsyncRetriever, *queries: str, k: int = 3) -> list[asyncio.Task[list[object]]]:
    """Tasks that have handed in their queries, in this order."""
    tasks = [asyncio.create_task(front.search(query, k)) for query in queries]
    await asyncio.sleep(0)
    return tasks


async def test_queries_that_wait_together_are_searched_together(gate: Gate) -> None:
    retriever = FunctionRetriever(gate)
    front = AsyncRetriever(retriever)
    [first] = await start(front, "first")
    await gate.wait_until_reached()
    others = await start(front, *(f"q{number}" for number in range(50)))
    gate.open.set()
    results = await asyncio.gather(first, *others)
    assert [ids(hits) for hits in results] == [["first"], *([f"q{number}"] for number in range(50))]
    assert [len(batch) for batch in retriever.batches] == [1, 50]
    await front.close()


async def test_equal_queries_are_searched_once_and_each_caller_gets_a_list_of_its_own(gate: Gate) -> None:
    retriever = FunctionRetriever(gate)
    front = AsyncRetriever(retriever)
    [first] = await start(front, "first")
    await gate.wait_until_reached()
    same = await start(front, *["same"] * 5)
    gate.open.set()
    results = await asyncio.gather(*same, first)
    assert retriever.batches == [["first"], ["same"]]
    results[0].clear()
    assert ids(results[1]) == ["same"]


async def test_a_batch_holds_no_more_than_its_limit_and_only_equal_k(gate: Gate) -> None:
    retriever = FunctionRetriever(gate)
    front = AsyncRetriever(retriever, max_batch=2)
    tasks = await start(front, "first")
    await gate.wait_until_reached()
    tasks += await start(front, "a", k=3) + await start(front, "b", k=5) + await start(front, "c", "d", k=3)
    gate.open.set()
    results = await asyncio.gather(*tasks)
    assert retriever.batches == [["first"], ["a", "c"], ["b"], ["d"]]
    assert results[2][0].passage.text == "about b, k=5"


async def test_one_request_with_many_queries_keeps_their_order() -> None:
    front = AsyncRetriever(FunctionRetriever(), max_batch=2)
    assert [ids(hits) for hits in await front.search_many(["c", "a", "c", "b"], 3)] == [["c"], ["a"], ["c"], ["b"]]
    assert await front.search_many([], 3) == []


@pytest.mark.parametrize("kind", [FailureKind.REJECTED, FailureKind.SERVER_ERROR, FailureKind.MALFORMED_REPLY])
async def test_one_bad_query_does_not_harm_the_others(gate: Gate, kind: FailureKind) -> None:
    def refuse_bad(queries: Sequence[str]) -> None:
        gate(queries)
        if "bad" in queries:
            raise ServiceFailure(Failure("retriever", kind, "bad query"))

    front = AsyncRetriever(FunctionRetriever(refuse_bad))
    tasks = await start(front, "first")
    await gate.wait_until_reached()
    tasks += await start(front, "good", "bad", "fine")
    gate.open.set()
    first, good, bad, fine = await asyncio.gather(*tasks, return_exceptions=True)
    assert [ids(hits) for hits in (first, good, fine)] == [["first"], ["good"], ["fine"]]
    assert isinstance(bad, ServiceFailure) and bad.failure.kind is kind


@pytest.mark.parametrize("kind", [FailureKind.UNREACHABLE, FailureKind.TIMEOUT, FailureKind.RATE_LIMITED])
async def test_a_failure_that_meets_every_query_reaches_every_caller_without_asking_again(
    gate: Gate, kind: FailureKind
) -> None:
    def fail(queries: Sequence[str]) -> None:
        gate(queries)
        raise ServiceFailure(Failure("retriever", kind, "down", attempts=3))

    retriever = FunctionRetriever(fail)
    front = AsyncRetriever(retriever)
    tasks = await start(front, "first")
    await gate.wait_until_reached()
    tasks += await start(front, "a", "b")
    gate.open.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [outcome.failure for outcome in outcomes] == [Failure("retriever", kind, "down", attempts=3)] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert retriever.batches == [["first"], ["a", "b"]]


async def test_any_exception_of_a_retriever_becomes_a_typed_failure() -> None:
    def fail(queries: Sequence[str]) -> None:
        raise ZeroDivisionError("oops")

    front = AsyncRetriever(FunctionRetriever(fail))
    with pytest.raises(ServiceFailure) as caught:
        await front.search("q", 3)
    assert caught.value.failure == Failure("retriever", FailureKind.SERVER_ERROR, "ZeroDivisionError: oops")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def test_a_user_error_stays_one() -> None:
    def fail(queries: Sequence[str]) -> None:
        raise UserError("the index is gone")

    with pytest.raises(UserError, match="the index is gone"):
        await AsyncRetriever(FunctionRetriever(fail)).search("q", 3)


async def test_a_cancelled_query_is_not_searched_and_its_neighbours_are(gate: Gate) -> None:
    retriever = FunctionRetriever(gate)
    front = AsyncRetriever(retriever)
    tasks = await start(front, "first")
    await gate.wait_until_reached()
    tasks += await start(front, "kept", "dropped", "kept too")
    tasks[0].cancel()
    tasks[2].cancel()
    await asyncio.sleep(0)
    gate.open.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError) and isinstance(outcomes[2], asyncio.CancelledError)
    assert retriever.batches == [["first"], ["kept", "kept too"]]


async def test_closing_answers_what_waits_and_refuses_what_comes_after(gate: Gate) -> None:
    front = AsyncRetriever(FunctionRetriever(gate))
    tasks = await start(front, "first", "second")
    closing = asyncio.create_task(front.close())
    gate.open.set()
    await closing
    assert [ids(hits) for hits in await asyncio.gather(*tasks)] == [["first"], ["second"]]
    with pytest.raises(RuntimeError, match="closed"):
        await front.search("third", 3)
    await front.close()


async def test_closing_does_not_wait_for_a_search_that_everyone_gave_up(gate: Gate) -> None:
    front = AsyncRetriever(FunctionRetriever(gate))
    [task] = await start(front, "abandoned")
    await gate.wait_until_reached()
    task.cancel()
    await asyncio.wait([task])
    await asyncio.wait_for(front.close(), 5)
    assert not gate.open.is_set()


def test_a_loop_that_ended_during_a_search_does_not_stop_the_next_one() -> None:
    gate = Gate()
    retriever = FunctionRetriever(gate)
    front = AsyncRetriever(retriever)

    async def give_up() -> None:
        [task] = await start(front, "abandoned")
        await gate.wait_until_reached()
        task.cancel()

    asyncio.run(give_up())
    gate.open.set()
    assert ids(asyncio.run(front.search("next", 3))) == ["next"]


async def test_hundreds_of_callers_each_get_their_own_answer() -> None:
    front = AsyncRetriever(FunctionRetriever(), max_batch=16)
    results = await asyncio.gather(*(front.search(f"q{number % 97}", 1 + number % 3) for number in range(600)))
    for number, [hit] in enumerate(results):
        assert hit.passage.text == f"about q{number % 97}, k={1 + number % 3}"


async def test_k_below_one_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="k must be at least 1"):
        await AsyncRetriever(FunctionRetriever()).search("q", 0)


def test_a_loop_that_ended_before_its_search_began_does_not_stop_the_next_one() -> None:
    front = AsyncRetriever(FunctionRetriever())
    loop = asyncio.new_event_loop()

    async def hand_in_and_stop() -> None:
        front.submit(["abandoned"], 3)
        loop.stop()

    task = loop.create_task(hand_in_and_stop())
    loop.run_forever()
    assert task.done()
    loop.close()
    assert ids(asyncio.run(front.search("next", 3))) == ["next"]


async def test_queries_that_are_handed_in_are_called_back_unless_given_up(gate: Gate) -> None:
    front = AsyncRetriever(FunctionRetriever(gate))
    settled: list[object] = []
    front.hand_in(["kept"], 3, settled.append)
    front.hand_in(["dropped"], 3, settled.append).cancel()
    gate.open.set()
    await front.search("last", 3)
    assert [[ids(hits) for hits in answer] for answer in settled] == [[["kept"]]]
