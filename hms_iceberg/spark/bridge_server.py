"""Where the bridge reaches Python: a socket in a folder that only this user can enter.

No port is opened, on loopback neither, since every user of a machine can reach those; only a JVM before Java 16, which
knows no other sockets, gets one. Each question carries the secret
of the session besides, which is compared before anything of the question is read.

On the wire: the secret, the length of the question (eight bytes, big endian), the question; then the length of the
answer, the answer. A connection takes one question after another. The first one of a session asks nothing (a length of
0): it stays open while the JVM has the session, and its end is the end of the server.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import secrets
import shutil
import socket
import socketserver
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.private_files import temporary_folder
from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.questions import commits

if TYPE_CHECKING:
    from hms_iceberg.spark.bridge_service import BridgeService

logger = logging.getLogger(__name__)

_SECRET_BYTES = 32
_LENGTH_BYTES = 8
_FIRST_WITH_SOCKETS = 16
_LARGEST_ANSWER = 2**31 - 16  # of an array in Java


class BridgeServer:
    """Serves one session's questions until the JVM, whose version is `java`, lets go of the session, or `close`."""

    def __init__(self, service: BridgeService, java: int = _FIRST_WITH_SOCKETS) -> None:
        self._folder = temporary_folder()
        self._secret = secrets.token_bytes(_SECRET_BYTES)
        self._remove = weakref.finalize(self, _remove, self._folder, os.getpid())
        try:
            if java < _FIRST_WITH_SOCKETS:
                self._server: _Server = _PortServer(("127.0.0.1", 0), self._secret, service, self.close)
            else:
                self._server = _FolderServer(str(self._folder / "bridge"), self._secret, service, self.close)
        except OSError as error:  # such as a path that is too long
            self._remove()
            raise ConfigurationError(
                f"Cannot extend the Spark session: {self._folder} cannot hold a socket ({error}). Set TMPDIR to "
                "another folder, with a short name, on a local file system."
            ) from error
        threading.Thread(target=self._server.serve_forever, name="hms_iceberg-bridge", daemon=True).start()

    def for_bridge(self) -> str:
        """The address and the secret as JSON, for the bridge's class PythonSocket."""
        address = self._server.server_address
        where = {"socket": address} if isinstance(address, str) else {"port": address[1]}
        return json.dumps({**where, "secret": self._secret.hex(), "commits": commits()})

    def close(self) -> None:
        """Takes no more connections; those that are open go on, and transactions on several tables are given up."""
        self._server.shutdown()
        self._server.server_close()
        self._remove()
        self._server.service.tables.transactions.close()


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """The listening socket (a path or a port), and what its connections need; `ended` is called as the JVM lets go."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: Any, secret: bytes, service: BridgeService, ended: Callable[[], None]) -> None:
        self.secret, self.service, self.ended = secret, service, ended
        super().__init__(address, _Connection)

    def handle_error(self, request: object, client_address: object) -> None:
        logger.debug("A connection of the bridge broke", exc_info=True)


class _FolderServer(_Server):
    """In a folder that only this user can enter."""

    address_family = socket.AF_UNIX


class _PortServer(_Server):
    """Listens on a port of loopback, without delay between the two parts of an answer."""

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, address


class _Connection(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Questions and answers, until one comes without the secret, or none comes any more."""
        while given := self.rfile.read(_SECRET_BYTES):
            if not hmac.compare_digest(given, self.server.secret):
                logger.warning("Refused a question to the Spark bridge that does not have the session's secret")
                return
            told = self.rfile.read(_LENGTH_BYTES)
            if len(told) < _LENGTH_BYTES:  # the connection broke, which is no end of the session
                return
            length = int.from_bytes(told, "big")
            if length == 0:
                self.rfile.read(1)
                self.server.ended()
                return
            question = self.rfile.read(length)
            if len(question) < length:  # nothing is done for a part of a question
                return
            self._send(self.server.service.answer(question))

    def _send(self, answer: bytes) -> None:
        if len(answer) > _LARGEST_ANSWER:
            message = f"The answer has {len(answer):,} bytes, more than Java can hold. Filter by partitions or columns."
            answer = AnswerWriter({"error": {"type": "UnsupportedError", "message": message}}).done()
        self.request.sendall(len(answer).to_bytes(_LENGTH_BYTES, "big"))
        self.request.sendall(answer)


def _remove(folder: Path, pid: int) -> None:
    """Removes the folder, unless this process was forked: then it is its parent's."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
