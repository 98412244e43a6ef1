"""One connection to a metastore: a channel, the Thrift protocol over it, and whether a request has left."""

from __future__ import annotations

import socket
from io import BytesIO
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import CReadableTransport, TTransportBase, TTransportException

from hms_iceberg.hms.connection.channel import Channel, HttpChannel, is_idle, open_channel
from hms_iceberg.hms.connection.client_settings import Address, ClientSettings
from hms_iceberg.hms.connection.thrift_types import ThriftClient


class ChannelTransport(TTransportBase, CReadableTransport):
    """Thrift's transport over a channel, one packet a request. `request_left` says whether a byte of the current
    request may have reached the server: after that a failure says nothing about what the server did."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._received = BytesIO()
        self._request = BytesIO()
        self.request_left = False

    def isOpen(self) -> bool:  # noqa: N802
        return self._channel.socket.fileno() >= 0

    def close(self) -> None:
        self._channel.socket.close()

    def is_stale(self) -> bool:
        """Whether the server closed the connection, or sent something unexpected, while it was idle."""
        return not is_idle(self._channel.socket)

    def set_timeout(self, seconds: float) -> None:
        self._channel.socket.settimeout(seconds)

    def acknowledge_at_once(self) -> None:
        """Acknowledges the next packets at once, without waiting for something to send. A server that holds a second
        answer back until the first one was acknowledged would wait 40 ms for that."""
        option = getattr(socket, "TCP_QUICKACK", None)  # Linux
        if option is not None:
            self._channel.socket.setsockopt(socket.IPPROTO_TCP, option, 1)

    def write(self, buf: bytes) -> None:
        """Adds to the request, which `flush` sends."""
        self._request.write(buf)

    def flush(self) -> None:
        request, self._request = self._request.getvalue(), BytesIO()
        framed = self._channel.framed(request)
        self.request_left = True
        self._channel.send(framed)

    def discard_request(self) -> None:
        self._request = BytesIO()

    def read(self, sz: int) -> bytes:
        """At most `sz` bytes of the answer."""
        data = self._received.read(sz)
        if data:
            return data
        self._received = BytesIO(self._receive())
        return self._received.read(sz)

    def _receive(self) -> bytes:
        data = self._channel.receive()
        if not data:
            raise TTransportException(TTransportException.END_OF_FILE, "the server closed the connection")
        return data

    @property
    def cstringio_buf(self) -> BytesIO:
        """Bytes that were received and not read yet; part of Thrift's interface to its C codec."""
        return self._received

    def cstringio_refill(self, partialread: bytes, reqlen: int) -> BytesIO:
        """Receives until `reqlen` bytes are there; part of Thrift's interface to its C codec."""
        parts, length = [partialread], len(partialread)
        while length < reqlen:
            parts.append(self._receive())
            length += len(parts[-1])
        self._received = BytesIO(b"".join(parts))
        return self._received


class Connection:
    """A connection that one thread uses at a time."""

    def __init__(self, address: Address, settings: ClientSettings) -> None:
        self.address = address
        channel = open_channel(address, settings)
        if settings.http is not None:
            channel = HttpChannel(channel, address, settings.http)
        self.transport = ChannelTransport(channel)
        self._client = ThriftClient(TBinaryProtocolAccelerated(self.transport))

    def call(self, name: str, *arguments: Any) -> Any:
        """Sends one request and returns its answer; `transport.request_left` says how far a failed request got."""
        self.transport.request_left = False
        self.send(name, *arguments)
        return self.receive(name)

    def send(self, name: str, *arguments: Any) -> None:
        """Sends one request, whose answer `receive` returns, in the order of the requests."""
        try:
            getattr(self._client, f"send_{name}")(*arguments)
        finally:
            self.transport.discard_request()  # what is left if it could not be encoded

    def receive(self, name: str) -> Any:
        """The answer to the oldest unanswered request."""
        return getattr(self._client, f"recv_{name}")()

    def close(self) -> None:
        self.transport.close()
