"""Ports for servers that cannot be given a listening socket."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of loopback that nobody listens at, and that nobody but a server which is told of it gets while this
    process lives: it stays bound, which Linux lets one with SO_REUSEADDR share."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        held.detach()
        return port
