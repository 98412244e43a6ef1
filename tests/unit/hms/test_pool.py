"""What is sent twice and what never, which address is asked, and that nothing is left open."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from hms_iceberg.errors import MetastoreAnswerLostError, MetastoreTimeoutError, MetastoreUnavailableError
from hms_iceberg.hms.connection.client_settings import Address, ClientSettings
from hms_iceberg.hms.connection.pool import ConnectionPool
from hms_iceberg.reports import Event, MetastoreCall, listen_to_events
from tests.support.ports import free_port

Handler = Callable[[socket.socket, bytes], None]


class RawServer:
    """Accepts connections and hands each request's bytes to a handler; it knows no Thrift."""

    def __init__(self, handler: Handler) -> None:
        self.requests: list[bytes] = []
        self._handler = handler
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address("127.0.0.1", self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while True:
                try:
                    request = connection.recv(65536)
                except OSError:
                    return
                if not request:
                    return
                self.requests.append(request)
                try:
                    self._handler(connection, request)
                except ConnectionAbortedError:
                    return

    def close(self) -> None:
        self._listener.close()


def hang_up(connection: socket.socket, request: bytes) -> None:
    raise ConnectionAbortedError


def stay_silent(connection: socket.socket, request: bytes) -> None:
    """Never answers."""


def talk_nonsense(connection: socket.socket, request: bytes) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def answer_names(connection: socket.socket, request: bytes) -> None:
    """The answer of `get_all_databases`, with one name, as TBinaryProtocol has it."""
    name = b"get_all_databases"
    head = bytes.fromhex("80010002") + len(name).to_bytes(4, "big") + name + bytes(4)
    body = bytes.fromhex("0f00000b00000001") + (2).to_bytes(4, "big") + b"db" + bytes(1)
    connection.sendall(head + body)


@contextmanager
def servers(*handlers: Handler) -> Iterator[list[RawServer]]:
    running = [RawServer(handler) for handler in handlers]
    yield running
    for server in running:
        server.close()


@contextmanager
def pool_on(*addresses: Address, **more: object) -> Iterator[ConnectionPool]:
    settings = {"attempts": 3, "retry_delay": 0.01, "socket_timeout": 5.0, **more}
    pool = ConnectionPool(ClientSettings(addresses=addresses, **settings))  # type: ignore[arg-type]
    yield pool
    pool.close()


def closed_port() -> Address:
    return Address("127.0.0.1", free_port())


@pytest.mark.parametrize("handler", [hang_up, talk_nonsense])
def test_a_change_is_sent_once_and_its_lost_answer_is_an_error_of_its_own(handler: Handler) -> None:
    with servers(handler) as (server,), pool_on(server.address) as pool:
        with pytest.raises(MetastoreAnswerLostError, match=rf"{server.address.port} broke while it carried out `drop"):
            pool.call("drop_table", "db", "t", False, repeatable=False)
        assert len(server.requests) == 1


def test_a_question_is_repeated_as_often_as_configured() -> None:
    with servers(hang_up) as (server,), pool_on(server.address, attempts=4) as pool:
        with pytest.raises(MetastoreUnavailableError, match="did not answer `get_all_databases`") as caught:
            pool.call("get_all_databases", repeatable=True)
        assert not isinstance(caught.value, MetastoreAnswerLostError)
        assert len(server.requests) == 4


def test_a_question_goes_to_the_next_address_when_one_hangs_up() -> None:
    with servers(hang_up, answer_names) as (bad, good), pool_on(bad.address, good.address) as pool:
        assert pool.call("get_all_databases", repeatable=True) == ["db"]
        assert pool.call("get_all_databases", repeatable=True) == ["db"]
        assert (len(bad.requests), len(good.requests)) == (1, 2), "the good one is asked first from now on"


def test_an_address_where_nobody_listens_is_passed_over_even_for_a_change() -> None:
    with servers(hang_up) as (server,), pool_on(closed_port(), server.address) as pool:
        with pytest.raises(MetastoreAnswerLostError):
            pool.call("drop_table", "db", "t", False, repeatable=False)
        assert len(server.requests) == 1


def test_nobody_at_any_address_is_an_error_that_names_them_all() -> None:
    first, second = closed_port(), closed_port()
    with pool_on(first, second, attempts=2) as pool:
        with pytest.raises(MetastoreUnavailableError, match=rf"{first}: .*refused.*; {second}: .*refused") as caught:
            pool.call("drop_table", "db", "t", False, repeatable=False)
        assert not isinstance(caught.value, MetastoreAnswerLostError), "nothing was sent"
        assert "Check that it runs" in str(caught.value)


def test_an_answer_that_does_not_come_in_time_is_given_up() -> None:
    with servers(stay_silent) as (server,), pool_on(server.address) as pool:
        silent = rf"{server.address} took the request `get_all_databases` and gave no answer in time \(0\.1 s\)"
        with pytest.raises(MetastoreTimeoutError, match=silent):
            pool.call("get_all_databases", repeatable=True, timeout=0.1)
        with pytest.raises(MetastoreAnswerLostError, match="no answer in time"):
            pool.call("unlock", None, repeatable=False, timeout=0.1)


def test_a_connection_that_the_server_closed_while_it_was_idle_is_not_used_for_a_change() -> None:
    first = True

    def once(connection: socket.socket, request: bytes) -> None:
        nonlocal first
        answer_names(connection, request)
        if first:
            first = False
            raise ConnectionAbortedError

    with servers(once) as (server,), pool_on(server.address, attempts=1) as pool:
        assert pool.call("get_all_databases", repeatable=False) == ["db"]
        server._threads[1].join()
        assert pool.call("get_all_databases", repeatable=False) == ["db"], "on a new connection"
        assert len(server.requests) == 2


def test_a_call_is_told_with_its_time_and_outcome() -> None:
    told: list[Event] = []
    with listen_to_events(told.append):
        for handler in (answer_names, hang_up):
            with servers(handler) as (server,), pool_on(server.address, attempts=1) as pool:
                with suppress(MetastoreUnavailableError):
                    pool.call("get_all_databases", repeatable=True)
                pool.send([("get_all_databases", ())]).replies()
    assert [(each.method, each.outcome) for each in told if isinstance(each, MetastoreCall)] == [
        ("get_all_databases", outcome) for outcome in ("answered", "failed") for _ in range(2)
    ]
    assert all(0 <= each.seconds < 60 for each in told)


def test_a_request_that_cannot_be_encoded_is_not_sent_and_leaves_no_rest_behind() -> None:
    with servers(answer_names) as (server,), pool_on(server.address) as pool:
        with pytest.raises(Exception, match=r"str|encode|bytes"):
            pool.call("get_database", 17, repeatable=False)
        assert pool.call("get_all_databases", repeatable=True) == ["db"]
        assert all(b"get_database" not in request for request in server.requests)


def test_an_interrupt_in_the_middle_of_a_call_does_not_mix_answers_up() -> None:
    interrupted = threading.Event()

    def slow(connection: socket.socket, request: bytes) -> None:
        if not interrupted.is_set():
            interrupted.set()
            time.sleep(0.2)
        answer_names(connection, request)

    with servers(slow) as (server,), pool_on(server.address) as pool:
        connection = pool._acquire()
        original = connection.receive
        pool._release(connection)

        def interrupt(name: str) -> object:
            connection.receive = original  # type: ignore[method-assign]
            raise KeyboardInterrupt

        connection.receive = interrupt  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            pool.call("get_all_databases", repeatable=True)
        assert pool.call("get_all_databases", repeatable=True) == ["db"]
        assert not connection.transport.isOpen()


def test_a_pool_keeps_few_idle_connections_and_closes_them_when_it_is_forgotten() -> None:
    with servers(answer_names) as (server,):
        pool = ConnectionPool(ClientSettings(addresses=(server.address,), idle_connections=2))
        leased = [pool._acquire() for _ in range(5)]
        for connection in leased:
            pool._release(connection)
        assert sum(connection.transport.isOpen() for connection in leased) == 2
        del pool
        gc.collect()
        assert not any(connection.transport.isOpen() for connection in leased)


def test_a_forked_process_does_not_use_the_connections_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers(answer_names) as (server,), pool_on(server.address) as pool:
        pool.call("get_all_databases", repeatable=True)
        (parents,) = pool._idle
        monkeypatch.setattr("hms_iceberg.hms.connection.pool.os.getpid", lambda: -1)
        child = pool._acquire()
        assert child is not parents
        child.close()
