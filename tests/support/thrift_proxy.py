"""A TCP proxy before a metastore that drops, cuts, delays or doubles what it is told to, by Thrift method."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType


class Fault(Enum):
    """What happens to one call."""

    DROP_REQUEST = "the request does not arrive, and the connection is cut"
    DROP_ANSWER = "the request is carried out, its answer does not arrive, and the connection is cut"
    CUT_ANSWER = "the request is carried out, the half of its answer arrives, and the connection is cut"
    LATE_REQUEST = "the connection is cut at once, and the request arrives later"
    DOUBLE_REQUEST = "the request arrives twice; the client sees the answer to the second"


@dataclass
class _Rule:
    method: str
    fault: Fault
    skip: int
    times: int
    before: Callable[[], None] | None
    after: Callable[[], None] | None


@dataclass
class ThriftProxy:
    """Listens on a port of its own, as a context manager.

    Attributes:
        target: port of the metastore.
        late_seconds: how late a `LATE_REQUEST` arrives.
        calls: names of the methods that clients called, in order.
    """

    target: int
    late_seconds: float = 0.5
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._rules: list[_Rule] = []
        self._mutex = threading.Lock()
        self._late: list[threading.Thread] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def uri(self) -> str:
        """What a catalog connects to."""
        return f"thrift://127.0.0.1:{self.port}"

    def on(
        self,
        method: str,
        fault: Fault,
        *,
        skip: int = 0,
        times: int = 1,
        before: Callable[[], None] | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Does `fault` to the next calls of a method.

        Args:
            method: its Thrift name.
            fault: what happens to it.
            skip: how many calls pass unharmed before.
            times: how many calls are harmed.
            before: called before the fault is done.
            after: called when the metastore has answered, before the client learns of it.
        """
        with self._mutex:
            self._rules.append(_Rule(method, fault, skip, times, before, after))

    def heal(self) -> None:
        """Does nothing to anybody from now on, and waits until late requests have arrived."""
        with self._mutex:
            self._rules.clear()
        for thread in self._late:
            thread.join()

    def __enter__(self) -> ThriftProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.heal()
        self._listener.close()

    # ------------------------------------------------------------------------------------------- details

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            with server:
                try:
                    self._relay(client, server)
                except OSError:
                    return

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        answer_fault: Fault | None = None
        after: Callable[[], None] | None = None
        while True:
            readable, _, _ = select.select([client, server], [], [])
            if client in readable:
                request = client.recv(1 << 20)
                if not request:
                    return
                method = _method(request)
                rule = self._rule(method) if method else None
                if rule is not None:
                    if rule.before is not None:
                        rule.before()
                    if rule.fault is Fault.DROP_REQUEST:
                        return
                    if rule.fault is Fault.LATE_REQUEST:
                        self._send_late(request)
                        return
                    if rule.fault is Fault.DOUBLE_REQUEST:
                        self._carry_out(request)
                    answer_fault, after = rule.fault, rule.after
                server.sendall(request)
            if server in readable:
                answer = server.recv(1 << 20)
                if after is not None:
                    after()
                    after = None
                if not answer or answer_fault is Fault.DROP_ANSWER:
                    return
                if answer_fault is Fault.CUT_ANSWER:
                    client.sendall(answer[: len(answer) // 2])
                    return
                client.sendall(answer)

    def _rule(self, method: str) -> _Rule | None:
        with self._mutex:
            self.calls.append(method)
            for rule in self._rules:
                if rule.method == method and rule.times:
                    if rule.skip:
                        rule.skip -= 1
                        return None
                    rule.times -= 1
                    return rule
        return None

    def _send_late(self, request: bytes) -> None:
        def later() -> None:
            time.sleep(self.late_seconds)
            self._carry_out(request)

        self._late.append(threading.Thread(target=later, daemon=True))
        self._late[-1].start()

    def _carry_out(self, request: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self.target)) as server:
            server.sendall(request)
            server.recv(1 << 20)


def _method(request: bytes) -> str | None:
    """The method's name, out of the head of a message of TBinaryProtocol; None in the middle of a message."""
    if len(request) < 8 or request[:4] != b"\x80\x01\x00\x01":
        return None
    (length,) = struct.unpack(">I", request[4:8])
    return request[8 : 8 + length].decode()
