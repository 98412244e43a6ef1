"""A channel whose requests are posted with HTTP, and whose answers are the bodies of its answers."""

from __future__ import annotations

import http.client
import io
import socket
from typing import Any

from hms_iceberg.errors import MetastoreAuthenticationError
from hms_iceberg.hms.connection.channel import Channel
from hms_iceberg.hms.connection.client_settings import Address
from hms_iceberg.hms.connection.http_settings import TOKEN, TOKEN_FILE, HttpSettings

_CONTENT_TYPE = "application/x-thrift"
_USER_HEADER = "x-actor-username"
_SAID = 500


class HttpChannel:
    """Posts requests over a channel, which stays open between them.

    Args:
        channel: what the requests go over.
        address: the server.
        settings: how they are posted.
    """

    def __init__(self, channel: Channel, address: Address, settings: HttpSettings) -> None:
        self._channel = channel
        self._address = address
        self._settings = settings
        # One buffer for all answers: the start of the next one may come with the end of this one.
        self._received = _KeptOpen(_Received(channel))

    @property
    def socket(self) -> socket.socket:
        """The socket that the bytes go over."""
        return self._channel.socket

    def framed(self, data: bytes) -> bytes:
        """The data as the body of a request."""
        headers = {
            "Host": str(self._address),
            "Content-Type": _CONTENT_TYPE,
            "Accept": _CONTENT_TYPE,
            "Content-Length": str(len(data)),
            **dict(self._settings.headers),
        }
        if self._settings.bearer is not None:
            headers["Authorization"] = f"Bearer {self._settings.bearer.read()}"
        else:
            headers[_USER_HEADER] = self._settings.user
        lines = [f"POST {self._settings.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + data

    def send(self, framed: bytes) -> None:
        """Sends all of a request."""
        self._channel.send(framed)

    def receive(self) -> bytes:
        """The body of the next answer; empty if the server closed the connection.

        Raises:
            MetastoreAuthenticationError: the server does not know the client, or gives it no access.
            EOFError: it is no answer of a metastore.
        """
        answer = http.client.HTTPResponse(_Socket(self._received), method="POST")  # type: ignore[arg-type]
        try:
            answer.begin()
            body = answer.read()
        except http.client.RemoteDisconnected:
            return b""
        except http.client.HTTPException as error:
            raise EOFError(f"its answer is not HTTP ({error!r})") from error
        if answer.status == http.HTTPStatus.OK:
            return body
        said = " ".join(body.decode(errors="replace").split())[:_SAID]
        if answer.status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise MetastoreAuthenticationError(
                f"The metastore at {self._address} gave no access: {answer.status} {answer.reason}. {said} Check the "
                f"token ({TOKEN}, {TOKEN_FILE}): that the server trusts who signed it, and that it has not expired."
            )
        raise EOFError(f"it answered {answer.status} {answer.reason} at {self._settings.path}: {said}")


class _Received(io.RawIOBase):
    """The bytes received over a channel, as a file."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._rest or self._channel.receive()
        size = min(len(data), len(buffer))
        buffer[:size], self._rest = data[:size], data[size:]
        return size


class _KeptOpen(io.BufferedReader):
    """Stays open when an answer that was read to its end closes it."""

    def close(self) -> None:
        pass


class _Socket:
    """As much of a socket as an answer asks for."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file

    def makefile(self, mode: str) -> io.BufferedReader:
        return self._file
