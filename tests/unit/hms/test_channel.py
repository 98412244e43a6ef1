"""The bytes of a connection to a metastore."""

from __future__ import annotations

import logging
import socket
import threading

import pytest

from hms_iceberg.hms.connection.channel import SocketChannel


def test_a_server_that_stays_silent_is_told_of_while_it_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname(), timeout=20)
        theirs, _ = server.accept()
    answer = threading.Timer(0.3, theirs.sendall, [b"late"])
    answer.start()
    with caplog.at_level(logging.WARNING), ours, theirs:
        assert SocketChannel(ours, warn_after=0.05).receive() == b"late"
        answer.join()
        theirs.sendall(b"quick")
        assert SocketChannel(ours).receive() == b"quick"
    (record,) = caplog.records
    assert "has not answered for 0 s. It is waited for, up to 20 s" in record.message
