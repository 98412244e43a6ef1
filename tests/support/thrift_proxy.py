"""A TCP proxy before a metastore that drops, cuts, delays or doubles what it is told to, by Thrift method."""

from __future__ import annotations

import random
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
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
    SLOW_ANSWER = "the request is carried out, and its answer takes its time"
    NO_ANSWER = "the request is carried out, and its answer never arrives, while the connection stays"


@dataclass
class Rule:
    """What is to be done to some calls, and how often it is still to be done."""

    method: str | None
    fault: Fault
    skip: int
    times: int
    before: Callable[[], None] | None
    after: Callable[[], None] | None

    @property
    def is_done(self) -> bool:
        """Whether it was done as often as it was to be."""
        return self.times == 0


@dataclass
class ThriftProxy:
    """Listens on a port of its own, as a context manager.

    Attributes:
        target: port of the metastore.
        late_seconds: how late a `LATE_REQUEST` arrives, unless the proxy is healed before.
        slow_seconds: how long a `SLOW_ANSWER` takes.
        calls: names of the methods that clients called, in order.
    """

    target: int
    late_seconds: float = 0.5
    slow_seconds: float = 0.3
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._rules: list[Rule] = []
        self._random, self._share = random.Random(), 0.0
        self._mutex = threading.Lock()
        self._late: list[threading.Thread] = []
        self._healed = threading.Event()
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
            self._rules.append(Rule(method, fault, skip, times, before, after))

    def at(
        self,
        number: int,
        fault: Fault,
        *,
        before: Callable[[], None] | None = None,
        after: Callable[[], None] | None = None,
    ) -> Rule:
        """Does `fault` to the call of this number, whatever its method; the next one is 0. See `on`."""
        rule = Rule(None, fault, number, 1, before, after)
        with self._mutex:
            self._rules.append(rule)
        return rule

    def fail_at_random(self, choose: random.Random, share: float) -> None:
        """Does a fault of any kind, but for connections that stay silent, to this share of all calls, until healed."""
        with self._mutex:
            self._random, self._share = choose, share

    def die(self) -> None:
        """Lets nobody in any more; connections that are open stay, until a fault cuts them."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else it waits for one more
        self._listener.close()

    def heal(self) -> None:
        """Does nothing to anybody from now on, and lets late requests arrive."""
        with self._mutex:
            self._rules.clear()
            self._share = 0.0
            healed, self._healed = self._healed, threading.Event()
        healed.set()
        for thread in self._late:
            thread.join()

    def __enter__(self) -> ThriftProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.heal()
        self.die()

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
            for end in (client, server):  # the rest of a long message waits for no acknowledgement of its start
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with server:
                try:
                    self._relay(client, server)
                except OSError:
                    return

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        rule: Rule | None = None
        waiting: list[bytes] = []  # requests that were sent before the answer to the one before them
        is_busy = False
        while True:
            if waiting and not is_busy:
                request, is_busy = waiting.pop(0), True
                rule = self._rule(_method(request) or "")
                if not self._arrives(request, rule):
                    return
                server.sendall(request)
            readable, _, _ = select.select([client, server], [], [])
            if client in readable:
                requests = _requests(client.recv(1 << 20))
                if not requests:
                    return
                if _method(requests[0]) is None:  # the rest of a long one
                    server.sendall(requests.pop(0))
                waiting += requests
            if server in readable:
                answer, is_busy = server.recv(1 << 20), False
                if rule is not None and rule.after is not None:
                    rule.after()
                if not answer or not self._pass_on(answer, rule and rule.fault, client):
                    return
                rule = None

    def _arrives(self, request: bytes, rule: Rule | None) -> bool:
        """Does to a request what is to be done before the server has it; False where the connection is to be cut."""
        if rule is None:
            return True
        if rule.before is not None:
            rule.before()
        if rule.fault is Fault.LATE_REQUEST:
            self._send_late(request)
        if rule.fault is Fault.DOUBLE_REQUEST:
            self._carry_out(request)
        return rule.fault not in (Fault.DROP_REQUEST, Fault.LATE_REQUEST)

    def _pass_on(self, answer: bytes, fault: Fault | None, client: socket.socket) -> bool:
        """Gives the client its answer, or what the fault leaves of it; False where the connection is to be cut."""
        if fault is Fault.DROP_ANSWER:
            return False
        if fault is Fault.NO_ANSWER:
            client.recv(1)  # until the client has enough of it
            return False
        if fault is Fault.SLOW_ANSWER:
            time.sleep(self.slow_seconds)
        client.sendall(answer[: len(answer) // 2] if fault is Fault.CUT_ANSWER else answer)
        return fault is not Fault.CUT_ANSWER

    def _rule(self, method: str) -> Rule | None:
        with self._mutex:
            self.calls.append(method)
            for rule in self._rules:
                if rule.method in (method, None) and rule.times:
                    if rule.skip:
                        rule.skip -= 1
                        return None
                    rule.times -= 1
                    return rule
            if self._share and self._random.random() < self._share:
                fault = self._random.choice([fault for fault in Fault if fault is not Fault.NO_ANSWER])
                return Rule(method, fault, 0, 0, None, None)
        return None

    def _send_late(self, request: bytes) -> None:
        healed = self._healed

        def later() -> None:
            healed.wait(self.late_seconds)
            self._carry_out(request)

        self._late.append(threading.Thread(target=later, daemon=True))
        self._late[-1].start()

    def _carry_out(self, request: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self.target)) as server:
            server.sendall(request)
            server.recv(1 << 20)


_HEAD = re.compile(rb"(?=\x80\x01\x00\x01\x00\x00\x00.[a-z_]+)", re.DOTALL)


def _requests(data: bytes) -> list[bytes]:
    """What a client sent, cut before each head of a message of TBinaryProtocol."""
    return [part for part in _HEAD.split(data) if part]


def _method(request: bytes) -> str | None:
    """The method's name, out of the head of a message of TBinaryProtocol; None in the middle of a message."""
    if len(request) < 8 or request[:4] != b"\x80\x01\x00\x01":
        return None
    (length,) = struct.unpack(">I", request[4:8])
    return request[8 : 8 + length].decode()
