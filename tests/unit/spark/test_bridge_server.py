"""The socket between Spark's JVM and Python: who may ask, and until when."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hms_iceberg.spark.bridge_server import BridgeServer
from hms_iceberg.spark.bridge_service import BridgeService

QUESTION = json.dumps({"call": "version"}).encode()
AS_NOBODY = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError:
    print("refused")
"""


class Heard(BridgeService):
    """Remembers the questions that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[bytes] = []

    def answer(self, text: bytes) -> bytes:
        self.questions.append(text)
        return super().answer(text)


@pytest.fixture
def service() -> Heard:
    return Heard()


@pytest.fixture
def server(service: Heard) -> Iterator[BridgeServer]:
    server = BridgeServer(service)
    yield server
    server.close()


def connected(server: BridgeServer) -> tuple[socket.socket, bytes]:
    """A connection to a server, and the secret of its session."""
    told = json.loads(server.for_bridge())
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(told["socket"])
    return connection, bytes.fromhex(told["secret"])


def framed(question: bytes) -> bytes:
    return len(question).to_bytes(8, "big") + question


def received(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (part := connection.recv(count - len(data))):
        data += part
    return data


def test_questions_with_the_secret_are_answered_one_after_another(server: BridgeServer) -> None:
    connection, secret = connected(server)
    with connection:
        for _ in range(2):
            connection.sendall(secret + framed(QUESTION))
            answer = received(connection, int.from_bytes(received(connection, 8), "big"))
            assert "version" in json.loads(answer[4:])


@pytest.mark.parametrize("given", [bytes(32), b"", framed(QUESTION)], ids=["wrong", "none", "a question in its place"])
def test_a_question_without_the_secret_is_refused_before_it_is_read(
    server: BridgeServer, service: Heard, given: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    connection, secret = connected(server)
    with connection:
        assert given != secret
        connection.sendall(given + framed(QUESTION) * 2)
        connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):  # what was not read is thrown away
            assert connection.recv(1) == b""
    assert service.questions == []
    assert "secret" in caplog.text and secret.hex() not in caplog.text


def test_a_secret_counts_for_one_question(server: BridgeServer, service: Heard) -> None:
    connection, secret = connected(server)
    with connection:
        connection.sendall(secret + framed(QUESTION) + bytes(32) + framed(b"{}"))
        connection.shutdown(socket.SHUT_WR)
        length = int.from_bytes(received(connection, 8), "big")
        assert len(received(connection, length + 1)) == length
    assert service.questions == [QUESTION]


@pytest.mark.parametrize("part", [0, 7, -1], ids=["no length", "a part of the length", "a part of the text"])
def test_a_part_of_a_question_does_nothing(server: BridgeServer, service: Heard, part: int) -> None:
    connection, secret = connected(server)
    with connection:
        connection.sendall(secret + framed(QUESTION)[:part])
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert service.questions == []
    connected(server)[0].close()  # the session goes on


def test_only_the_user_can_enter_the_folder_of_the_socket(server: BridgeServer) -> None:
    folder = Path(json.loads(server.for_bridge())["socket"]).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.stat().st_uid == os.getuid()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_cannot_connect(server: BridgeServer) -> None:
    path = json.loads(server.for_bridge())["socket"]
    as_nobody = subprocess.run([sys.executable, "-c", AS_NOBODY, path], capture_output=True, text=True, timeout=60)
    assert as_nobody.stdout == "refused\n", as_nobody.stderr


def test_the_server_ends_with_the_connection_that_keeps_it(server: BridgeServer) -> None:
    folder = Path(json.loads(server.for_bridge())["socket"]).parent
    connection, secret = connected(server)
    with connection:
        connection.sendall(secret + framed(b""))
        other, _ = connected(server)
        other.close()
        assert folder.exists()
    until = time.monotonic() + 60
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not folder.exists()


def test_a_process_that_was_forked_leaves_the_folder_to_its_parent(server: BridgeServer) -> None:
    folder = Path(json.loads(server.for_bridge())["socket"]).parent
    child = os.fork()
    if child == 0:
        try:
            server._remove()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert folder.exists()


def test_a_folder_whose_name_is_too_long_for_a_socket_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hms_iceberg.errors import ConfigurationError

    (long := tmp_path / ("x" * 120)).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with pytest.raises(ConfigurationError, match="TMPDIR"):
        BridgeServer(BridgeService())
    assert list(long.iterdir()) == []
