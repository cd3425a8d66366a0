"""The circuit breaker by itself, and what a client does with it."""

from __future__ import annotations

import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stub_server import Reply, results, stub_server

from searchparty.errors import FailureKind, ServiceFailure
from searchparty.retrieval.breaker import CircuitBreaker
from searchparty.retrieval.remote import RemoteRetriever
from searchparty.retrieval.retrying import Patience


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(failures: int = 3) -> tuple[CircuitBreaker, Clock]:
    clock = Clock()
    breaker = CircuitBreaker(failures, 10.0, clock)
    for _ in range(failures):
        assert breaker.admit() == 0
        breaker.report(alive=False)
    return breaker, clock


def test_it_opens_after_as_many_failures_in_a_row_as_were_named() -> None:
    breaker, clock = opened()
    clock.now = 4.0
    assert breaker.admit() == 6.0


def test_a_success_between_failures_starts_the_count_again() -> None:
    breaker = CircuitBreaker(2, 10.0, Clock())
    for alive in (False, True, False, True, False):
        assert breaker.admit() == 0
        breaker.report(alive)
    assert breaker.admit() == 0


def test_one_probe_is_let_through_and_decides() -> None:
    breaker, clock = opened()
    clock.now = 10.0
    assert breaker.admit() == 0
    assert breaker.admit() > 0, "the probe is under way"
    breaker.report(alive=False)
    assert breaker.admit() == 10.0
    clock.now = 20.0
    assert breaker.admit() == 0
    breaker.report(alive=True)
    assert breaker.admit() == breaker.admit() == 0


@given(st.lists(st.booleans()))
def test_a_breaker_of_no_failures_never_opens(endings: list[bool]) -> None:
    breaker = CircuitBreaker(0, 10.0, Clock())
    for alive in endings:
        assert breaker.admit() == 0
        breaker.report(alive)


def failure(retriever: RemoteRetriever) -> ServiceFailure:
    with pytest.raises(ServiceFailure) as caught:
        retriever.search(["q"], 3)
    return caught.value


def test_a_dead_server_is_no_longer_asked_until_the_pause_is_over() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    patience = Patience(attempts=1, break_after=2, break_seconds=1.0)
    retriever = RemoteRetriever(f"http://127.0.0.1:{port}", patience=patience)
    assert [failure(retriever).failure.attempts for _ in range(3)] == [1, 1, 0]
    refused = failure(retriever).failure
    assert refused.kind is FailureKind.UNREACHABLE
    assert "not asked" in refused.detail and "last: unreachable" in refused.detail
    time.sleep(1.1)
    assert failure(retriever).failure.attempts == 1


@pytest.mark.parametrize(("status", "asked"), [(503, 2), (502, 2), (500, 6), (400, 6), (429, 6)])
def test_only_a_server_that_is_out_of_order_is_left_alone(status: int, asked: int) -> None:
    with stub_server(Reply(status)) as stub:
        retriever = RemoteRetriever(stub.url, patience=Patience(attempts=1, break_after=2, break_seconds=60))
        for _ in range(6):
            failure(retriever)
        assert len(stub.requests) == asked


def test_a_server_that_comes_back_is_used_again() -> None:
    with stub_server(Reply(503), Reply(503), results([])) as stub:
        retriever = RemoteRetriever(stub.url, patience=Patience(attempts=1, break_after=2, break_seconds=0.1))
        for _ in range(2):
            failure(retriever)
        time.sleep(0.15)
        assert retriever.search(["q"], 3) == retriever.search(["q"], 3) == [[]]
