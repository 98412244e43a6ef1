"""A pool of connections to one metastore (at one or several addresses), and the rule of what may be sent twice.

A request that changes something is sent at most once: when its connection breaks after the first byte left, nobody
knows whether it was carried out, and `MetastoreAnswerLostError` says so. Requests that only read are repeated, on
another address if there is one.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from struct import error as struct_error
from typing import Any

from thrift.protocol.TProtocol import TProtocolException
from thrift.transport.TTransport import TTransportException

from hms_iceberg.errors import MetastoreAnswerLostError, MetastoreTimeoutError, MetastoreUnavailableError
from hms_iceberg.hms.connection.client_settings import Address, ClientSettings
from hms_iceberg.hms.connection.connection import Connection
from hms_iceberg.hms.connection.security import CLIENT_CERTIFICATE, KERBEROS, USE_TLS
from hms_iceberg.hms.connection.thrift_types import TException
from hms_iceberg.reports import ANSWERED, FAILED, REFUSED, MetastoreCall, tell_event

logger = logging.getLogger(__name__)

# What a connection raises when it breaks, or when what comes over it makes no sense.
_BROKEN = (OSError, EOFError, TTransportException, TProtocolException, UnicodeDecodeError, struct_error)


@dataclass(frozen=True)
class Reply:
    """The outcome of one request of several: its value or error, and the time (`time.monotonic`, seconds) of it.
    `error` is a `TException` of the server, or `MetastoreAnswerLostError`; None for a success."""

    value: Any
    error: TException | MetastoreAnswerLostError | None
    moment: float


class SentRequests:
    """Requests that were sent over one connection, and whose answers are still to be fetched."""

    def __init__(
        self,
        pool: ConnectionPool,
        connection: Connection,
        names: Sequence[str],
        started: float,
        broken: BaseException | None,
    ) -> None:
        self._pool = pool
        self._connection = connection
        self._names = names
        self._started = started
        self._broken = broken
        self._abandon = weakref.finalize(self, connection.close)  # after an interrupt

    def replies(self) -> list[Reply]:
        """Waits for the answers; those after a broken connection are lost. Call it once."""
        replies = self._replies()
        for name, reply in zip(self._names, replies, strict=True):
            _tell(name, reply.error, self._started, reply.moment)
        return replies

    def _replies(self) -> list[Reply]:
        connection, replies = self._connection, list[Reply]()
        self._abandon.detach()
        try:
            if self._broken is None:
                connection.transport.set_timeout(self._pool.settings.socket_timeout)
                for name in self._names:
                    connection.transport.acknowledge_at_once()
                    replies.append(_reply(connection, name))
        except _BROKEN as error:
            self._broken = error
            self._pool._discard(connection)
        except BaseException:
            self._pool._discard(connection)
            raise
        if self._broken is None:
            self._pool._release(connection)
            return replies
        lost = [self._pool._answer_lost(connection, name, self._broken) for name in self._names[len(replies) :]]
        return [*replies, *(Reply(None, error, time.monotonic()) for error in lost)]


def _reply(connection: Connection, name: str) -> Reply:
    try:
        return Reply(connection.receive(name), None, time.monotonic())
    except _BROKEN:
        raise
    except TException as error:
        return Reply(None, error, time.monotonic())


def _tell(method: str, error: BaseException | None, started: float, ended: float) -> None:
    def call() -> MetastoreCall:
        if error is None:
            outcome = ANSWERED
        else:
            outcome = REFUSED if isinstance(error, TException) else FAILED
        return MetastoreCall(method, outcome, ended - started)

    tell_event(call)


class ConnectionPool:
    """Connections that are opened as needed and kept while idle. Safe for threads, and for processes that fork."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self._mutex = threading.Lock()
        self._idle: list[Connection] = []
        self._preferred = 0
        self._pid = os.getpid()
        weakref.finalize(self, _close_all, self._idle)

    def __str__(self) -> str:
        return "thrift://" + ",".join(map(str, self.settings.addresses))

    def call(self, name: str, *arguments: Any, repeatable: bool, timeout: float | None = None) -> Any:
        """Calls a method of the metastore, and tells of it; see `_called`."""
        started = time.monotonic()
        try:
            result = self._called(name, *arguments, repeatable=repeatable, timeout=timeout)
        except BaseException as error:
            _tell(name, error, started, time.monotonic())
            raise
        _tell(name, None, started, time.monotonic())
        return result

    def _called(self, name: str, *arguments: Any, repeatable: bool, timeout: float | None = None) -> Any:
        """Calls a method of the metastore, again if it is `repeatable`. TException: it refused;
        MetastoreUnavailableError: nothing was sent, or only what may be repeated; MetastoreTimeoutError: it did not
        answer a read; MetastoreAnswerLostError: the fate of the request is not known."""
        for attempt in range(self.settings.attempts):
            connection = self._acquire()
            try:
                seconds = timeout or self.settings.socket_timeout
                connection.transport.set_timeout(seconds)
                result = connection.call(name, *arguments)
            except _BROKEN as error:
                self._discard(connection)
                if connection.transport.request_left and not repeatable:
                    raise self._answer_lost(connection, name, error) from error
                last = attempt + 1 == self.settings.attempts
                if last or (timeout is not None and isinstance(error, TimeoutError)):
                    if isinstance(error, TimeoutError):
                        raise _timed_out(connection.address, name, seconds) from error
                    raise self._unavailable(f"did not answer `{name}`: {_reason(error)}") from error
                logger.info("Repeating %s, as the connection to %s broke: %s", name, connection.address, error)
            except TException:
                self._release(connection)
                raise
            except BaseException:  # an interrupt in the middle leaves an answer on the line
                self._discard(connection)
                raise
            else:
                self._release(connection)
                return result
        raise AssertionError("unreachable")

    def send(self, requests: Sequence[tuple[str, Sequence[Any]]]) -> SentRequests:
        """Sends several requests (method and arguments) over one connection; their answers must be fetched. The server
        carries them out one after the other, and each of them whether or not one before it failed."""
        connection = self._acquire()
        connection.transport.set_timeout(self.settings.socket_timeout)
        connection.transport.request_left = False
        started = time.monotonic()
        broken: BaseException | None = None
        try:
            for name, arguments in requests:
                connection.send(name, *arguments)
        except _BROKEN as error:
            self._discard(connection)
            if not connection.transport.request_left:
                raise self._unavailable(_reason(error)) from error
            broken = error
        except BaseException:
            self._discard(connection)
            raise
        return SentRequests(self, connection, [name for name, _ in requests], started, broken)

    def close(self) -> None:
        """Closes the connections, busy ones once they are idle; further calls open new ones."""
        with self._mutex:
            _close_all(self._idle)

    # ------------------------------------------------------------------------------------------- details

    def _acquire(self) -> Connection:
        while True:
            with self._mutex:
                self._forget_those_of_the_parent()
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._open()
            if not connection.transport.is_stale():
                return connection
            connection.close()

    def _release(self, connection: Connection) -> None:
        with self._mutex:
            self._forget_those_of_the_parent()
            if len(self._idle) < self.settings.idle_connections:
                self._idle.append(connection)
                return
        connection.close()

    def _discard(self, connection: Connection) -> None:
        connection.close()
        with self._mutex:  # a server that hangs or dies: the next one first, from now on
            if self._address(0) == connection.address:
                self._preferred += 1

    def _forget_those_of_the_parent(self) -> None:
        if self._pid != os.getpid():  # a fork shares the parent's sockets, and two readers would mix answers
            _close_all(self._idle)
            self._pid = os.getpid()

    def _address(self, offset: int) -> Address:
        addresses = self.settings.addresses
        return addresses[(self._preferred + offset) % len(addresses)]

    def _open(self) -> Connection:
        failures: dict[Address, str] = {}
        for round_number in range(self.settings.attempts):
            if round_number:
                time.sleep(self.settings.retry_delay)
            for offset in range(len(self.settings.addresses)):
                address = self._address(offset)
                try:
                    connection = Connection(address, self.settings)
                    self._introduce(connection)
                except _BROKEN as error:
                    failures[address] = _reason(error)
                    continue
                self._prefer(address)
                return connection
        raise self._unavailable("; ".join(f"{address}: {why}" for address, why in failures.items()))

    def _introduce(self, connection: Connection) -> None:
        if not self.settings.user or self.settings.login is not None or self.settings.http is not None:
            return  # HTTP says it with every request
        user, _, groups = self.settings.user.partition(":")
        try:
            connection.call("set_ugi", user, [group for group in groups.split(",") if group])
        except BaseException:
            connection.close()
            raise

    def _prefer(self, address: Address) -> None:
        with self._mutex:
            self._preferred = self.settings.addresses.index(address)

    def _answer_lost(self, connection: Connection, name: str, error: BaseException) -> MetastoreAnswerLostError:
        return MetastoreAnswerLostError(
            f"The connection to the metastore at {connection.address} broke while it carried out `{name}` "
            f"({_reason(error)}), so nobody knows whether it did."
        )

    def _unavailable(self, why: str) -> MetastoreUnavailableError:
        tls = self.settings.tls
        wants = f" Over TLS it may also want a client's certificate ({CLIENT_CERTIFICATE})." if tls else ""
        return MetastoreUnavailableError(
            f"No Hive Metastore answered at {self} ({why}). Check that it runs, that host and port are right and "
            f"that no firewall is between; `hms-iceberg metastore start` starts one for development.{wants}"
        )


def _close_all(connections: list[Connection]) -> None:
    while connections:
        connections.pop().close()


def _timed_out(address: Address, name: str, seconds: float) -> MetastoreTimeoutError:
    return MetastoreTimeoutError(
        f"The metastore at {address} took the request `{name}` and gave no answer in time ({seconds:g} s). Check that "
        f"a Hive Metastore listens there, and not another service, and that it is not overloaded; the time is that of "
        f"hive.metastore.client.socket.timeout."
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, TProtocolException) or getattr(error, "type", None) == TTransportException.SIZE_LIMIT:
        return f"its answer is not plain Thrift; perhaps it wants TLS ({USE_TLS}) or a login ({KERBEROS})"
    return str(error) or type(error).__name__
