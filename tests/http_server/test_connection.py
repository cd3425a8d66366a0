"""HTTP/1.1 of our own: the same answers however the bytes are split, in order, within limits; garbage ends a connection."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from running_http import running_application
from searchparty.http_server import asgi
from searchparty.http_server.asgi import Bodies, RequestError
from searchparty.http_server.exchange import DirectApplication, Exchange

LONGEST = 100_000


class Echo(DirectApplication):
    """Replies with method, path and body: to `/later` and `/slow` after a while, to `/never` not at all."""

    def __init__(self) -> None:
        super().__init__(None, Bodies(LONGEST, 10 * LONGEST))
        self.errors: list[str] = []
        self.under_way = 0
        self.given_up = 0

    def admit(self, exchange: Exchange) -> None:
        if exchange.path == "/refused":
            raise RequestError(404, "no", "not_found")
        self.under_way += 1
        exchange.ended = self._leave

    def answer(self, exchange: Exchange, body: bytes) -> None:
        exchange.given_up = self._count_given_up
        if exchange.path == "/broken":
            raise ZeroDivisionError
        reply = f"{exchange.method} {exchange.path} ".encode() + body
        if exchange.path in ("/later", "/slow"):
            seconds = 0.001 if exchange.path == "/later" else 0.5
            asyncio.get_running_loop().call_later(seconds, exchange.respond, 200, reply)
        elif exchange.path != "/never":
            exchange.respond(200, reply * (10_000 if exchange.path == "/long" else 1))

    def count_error(self, kind: str) -> None:
        self.errors.append(kind)

    def error_body(self, error: RequestError) -> bytes:
        return str(error).encode()

    async def close(self) -> None:
        pass

    def _leave(self) -> None:
        self.under_way -= 1

    def _count_given_up(self) -> None:
        self.given_up += 1


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Echo, str]]:
    application = Echo()
    with running_application(application) as address:
        yield application, address


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    target = urlsplit(address)
    with socket.create_connection((target.hostname, target.port), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def until_closed(connection: socket.socket) -> bytes:
    received = b""
    while part := connection.recv(65536):
        received += part
    return received


def replies(received: bytes) -> list[tuple[int, bytes]]:
    """Status and body of each reply, all of which must be whole."""
    found = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        length = re.search(rb"content-length: (\d+)", head)
        size = int(length[1]) if length else 0
        assert len(rest) >= size
        if status != 100:
            found.append((status, rest[:size]))
        received = rest[size:]
    return found


def eventually(condition: object) -> None:
    deadline = time.monotonic() + 10
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def chunked(body: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:3], body[3:]) if part) + b"0\r\n\r\n"


def request(path: str, body: bytes, in_chunks: bool, last: bool) -> bytes:
    length = b"Transfer-Encoding: chunked" if in_chunks else b"Content-Length: %d" % len(body)
    ending = b"Connection: close\r\n" if last else b""
    head = b"POST %b HTTP/1.1\r\nHost: x\r\n%b\r\n%b\r\n" % (path.encode(), length, ending)
    return head + (chunked(body) if in_chunks else body)


asked = st.tuples(st.sampled_from(["/now", "/later", "/now/?q=1", "/refused", "/%6eow"]), st.binary(max_size=40), st.booleans())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(asked, min_size=1, max_size=6), st.lists(st.integers(1, 60), max_size=8))
def test_however_the_bytes_are_split_each_request_gets_its_answer_in_order(
    server: tuple[Echo, str], requests: list[tuple[str, bytes, bool]], cuts: list[int]
) -> None:
    application, address = server
    stream = b"".join(request(*asked, last=place == len(requests) - 1) for place, asked in enumerate(requests))
    with connected(address) as connection:
        for cut in cuts:
            connection.sendall(stream[:cut])
            stream = stream[cut:]
            time.sleep(0.0005)
        connection.sendall(stream)
        found = replies(until_closed(connection))
    expected = []
    for path, body, _ in requests:
        plain = path.replace("%6e", "n").split("?")[0].rstrip("/")
        expected.append((404, b"no") if plain == "/refused" else (200, f"POST {plain} ".encode() + body))
    # A refusal whose body has not come ends the connection, since the rest of the stream means nothing then.
    assert found == expected[: len(found)]
    assert len(found) == len(expected) or found[-1][0] == 404
    assert application.under_way == 0


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=200))
def test_garbage_is_answered_with_400_and_the_connection_closed(server: tuple[Echo, str], garbage: bytes) -> None:
    application, address = server
    with connected(address) as connection:
        connection.sendall(b"\x00" + garbage)
        assert [status for status, _ in replies(until_closed(connection))] == [400]
    assert application.under_way == 0


def test_garbage_after_a_request_is_refused_after_its_answer(server: tuple[Echo, str]) -> None:
    with connected(server[1]) as connection:
        connection.sendall(request("/later", b"x", False, False) + b"\x00\x00")
        assert [status for status, _ in replies(until_closed(connection))] == [200, 400]


def test_thousands_of_requests_in_one_piece_are_all_answered(server: tuple[Echo, str]) -> None:
    with connected(server[1]) as connection:
        connection.sendall(
            b"GET /later HTTP/1.1\r\n\r\n" + b"GET / HTTP/1.1\r\n\r\n" * 3000 + request("/now", b"", False, True)
        )
        assert [status for status, _ in replies(until_closed(connection))] == [200] * 3002


def test_a_client_that_does_not_read_is_not_read_either(server: tuple[Echo, str]) -> None:
    application, address = server
    with connected(address) as connection:
        connection.settimeout(1)
        with pytest.raises(TimeoutError):
            for _ in range(1000):
                connection.sendall(request("/long", b"x" * 50_000, False, False))
        assert application.under_way <= 2
    eventually(lambda: application.under_way == 0)


def test_the_rest_of_a_body_is_asked_for_where_the_client_expects_it(server: tuple[Echo, str]) -> None:
    with connected(server[1]) as connection:
        connection.sendall(b"POST /now HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"body")
        assert replies(until_closed(connection)) == [(200, b"POST /now body")]


def test_a_body_that_is_announced_too_long_is_refused_before_it_comes(server: tuple[Echo, str]) -> None:
    with connected(server[1]) as connection:
        connection.sendall(b"POST /now HTTP/1.1\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n" % (LONGEST + 1))
        assert [status for status, _ in replies(until_closed(connection))] == [413]


def test_a_head_without_end_is_refused(server: tuple[Echo, str]) -> None:
    with connected(server[1]) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(20):
            connection.sendall(b"x-%d: %b\r\n" % (1, b"y" * 8000))
            time.sleep(0.002)
        assert [status for status, _ in replies(until_closed(connection))] == [431]


def test_a_head_that_does_not_come_is_given_up(server: tuple[Echo, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "READING_SECONDS", 0.1)
    with connected(server[1]) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost")
        assert [status for status, _ in replies(until_closed(connection))] == [408]


def test_a_reply_to_head_has_no_body_and_a_request_of_http_1_0_ends_the_connection(server: tuple[Echo, str]) -> None:
    with connected(server[1]) as connection:
        connection.sendall(b"HEAD /now HTTP/1.0\r\n\r\n")
        reply = until_closed(connection)
    assert reply.startswith(b"HTTP/1.1 200 OK\r\n") and reply.endswith(b"\r\n\r\n") and b"content-length: 10\r\n" in reply


def test_a_fault_of_the_application_is_500_and_the_connection_lives(server: tuple[Echo, str]) -> None:
    with connected(server[1]) as connection:
        connection.sendall(request("/broken", b"", False, False) + request("/now", b"", False, True))
        assert [status for status, _ in replies(until_closed(connection))] == [500, 200]


def test_a_wish_for_another_protocol_is_passed_over(server: tuple[Echo, str]) -> None:
    wish = b"GET /now HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    with connected(server[1]) as connection:
        connection.sendall(wish + request("/now", b"x", False, True))
        assert replies(until_closed(connection)) == [(200, b"GET /now "), (200, b"POST /now x")]


def test_work_is_given_up_when_its_client_goes(server: tuple[Echo, str]) -> None:
    application, address = server
    before = application.given_up
    with connected(address) as connection:
        connection.sendall(request("/never", b"x", False, False))
        eventually(lambda: application.under_way == 1)
    eventually(lambda: application.given_up == before + 1)
    assert (application.under_way, application.errors[-1]) == (0, "disconnected")


def test_what_runs_is_answered_when_the_server_ends_and_idle_connections_are_closed() -> None:
    application = Echo()
    with ExitStack() as connections:
        with running_application(application) as address:
            idle, busy = (connections.enter_context(connected(address)) for _ in range(2))
            idle.sendall(request("/now", b"", False, False))
            assert replies(idle.recv(1000)) == [(200, b"POST /now ")]
            busy.sendall(request("/slow", b"x", False, False))
            eventually(lambda: application.under_way == 1)
        assert until_closed(idle) == b""
        assert replies(until_closed(busy)) == [(200, b"POST /slow x")]
