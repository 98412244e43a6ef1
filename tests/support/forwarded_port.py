"""A port that leads to another one, and whose connections can be cut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class ForwardedPort:
    """Passes on what is sent, as a context manager.

    Args:
        target: the port on loopback that it leads to.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._serving = threading.Thread(target=self._serve)
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> ForwardedPort:
        self._serving.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._serving.join()
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        """Ends every connection; new ones are taken."""
        ended, self._open = self._open, []
        for each in ended:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                ends = self._listening.accept()[0], socket.create_connection(("127.0.0.1", self._target))
                for end in ends:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.extend(ends)
                for pair in (ends, ends[::-1]):
                    threading.Thread(target=_pass_on, args=pair, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
