"""Channels that carry the bytes of one connection: a socket, encrypted or not, a login with SASL, or HTTP over it.

The login and its frames are those of Thrift's SASL transport (THRIFT-876), which Hive's server speaks.
"""

from __future__ import annotations

import http.client
import io
import logging
import select
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, Protocol

from hms_iceberg.errors import MetastoreAuthenticationError, MissingDependencyError
from hms_iceberg.hms.connection.client_settings import Address, ClientSettings
from hms_iceberg.hms.connection.http_settings import TOKEN, TOKEN_FILE, HttpSettings
from hms_iceberg.hms.connection.security import CA_FILE, CHECK_HOST_NAME, KERBEROS, USE_TLS, Login, Tls

_CONTENT_TYPE = "application/x-thrift"
_USER_HEADER = "x-actor-username"
_SAID = 500

logger = logging.getLogger(__name__)

_READ_SIZE = 65536
_MAX_LOGIN_MESSAGE = 1 << 20
_START, _OK, _BAD, _ERROR, _COMPLETE = range(1, 6)


class Channel(Protocol):
    @property
    def socket(self) -> socket.socket: ...

    def framed(self, data: bytes) -> bytes:
        """The bytes to send for the data; raises EOFError if the channel can make no more frames."""
        ...

    def send(self, framed: bytes) -> None:
        """Sends all of what `framed` made."""
        ...

    def receive(self) -> bytes:
        """Received bytes, at least one; empty if the server closed the connection."""
        ...


def open_channel(address: Address, settings: ClientSettings) -> Channel:
    """Connects, encrypts and logs in as the settings say; afterwards the channel has the time-out of an answer."""
    plain = socket.create_connection((address.host, address.port), timeout=settings.connect_timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if settings.tls is not None:
            plain = _encrypted(plain, address, settings.tls)
        channel: Channel = SocketChannel(plain)
        if settings.login is not None:
            channel = log_in(channel, address, settings.login)
        plain.settimeout(settings.socket_timeout)
    except BaseException:
        plain.close()
        raise
    return channel


def is_idle(connection: socket.socket) -> bool:
    """Whether a connection is open and has received nothing since the last answer."""
    try:
        if isinstance(connection, ssl.SSLSocket) and connection.pending():
            return False
        readable, _, broken = select.select([connection], [], [connection], 0)
    except (OSError, ValueError):
        return False
    return not readable and not broken


class SocketChannel:
    """A channel over a plain socket, which logs a warning once an answer takes longer than `warn_after` seconds."""

    def __init__(self, connection: socket.socket, warn_after: float = 10.0) -> None:
        self.socket = connection
        self._warn_after = warn_after

    def framed(self, data: bytes) -> bytes:
        """The data, unchanged: a plain socket needs no frames."""
        return data

    def send(self, framed: bytes) -> None:
        self.socket.sendall(framed)

    def receive(self) -> bytes:
        if self._is_silent():
            host, port = self.socket.getpeername()[:2]
            logger.warning(
                "The metastore at %s:%s took a request and has not answered for %.0f s. It is waited for, up to %.0f s "
                "(hive.metastore.client.socket.timeout). Check that a Hive Metastore listens there, and its load.",
                host,
                port,
                self._warn_after,
                self.socket.gettimeout() or 0,
            )
        return self.socket.recv(_READ_SIZE)

    def _is_silent(self) -> bool:
        """Whether nothing came within `warn_after`, and the time-out is longer than that."""
        timeout = self.socket.gettimeout()
        if timeout is None or timeout <= self._warn_after:
            return False
        if isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            return False
        readable, _, broken = select.select([self.socket], [], [self.socket], self._warn_after)
        return not readable and not broken


# ----------------------------------------------------------------------------------------------- encryption


def _encrypted(plain: socket.socket, address: Address, tls: Tls) -> socket.socket:
    try:
        return tls.context().wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        raise MetastoreAuthenticationError(
            f"The metastore at {address} could not be trusted: {error.verify_message or error}. Name the certificates "
            f"that vouch for it with the property {CA_FILE!r} (a PEM file); {CHECK_HOST_NAME}=false allows a "
            "certificate of another host."
        ) from error
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        raise
    except ssl.SSLError as error:
        raise MetastoreAuthenticationError(
            f"No encrypted connection to the metastore at {address}: {error}. Check that it is set up for TLS, or set "
            f"{USE_TLS}=false."
        ) from error


# ---------------------------------------------------------------------------------------------------- login


def log_in(channel: Channel, address: Address, login: Login) -> Channel:
    """Authenticates the client; returns the channel to use from then on, which may encrypt what is sent."""
    from_server = _Buffer(channel)
    login = login.of_process()
    client = _sasl_client(login, login.host or address.host)
    try:
        _send_status(channel, _START, login.mechanism.encode())
        _send_status(channel, _OK, client.process() or b"")
        while True:
            status, said = from_server.take_login_message()
            if status in (_BAD, _ERROR):
                raise _refused(address, login, said.decode(errors="replace"))
            if status == _COMPLETE:
                if login.mechanism == "DIGEST-MD5":
                    client.process(said)  # the server's own proof
                break
            if status != _OK:
                raise _refused(address, login, f"status {status}, which no SASL server sends")
            _send_status(channel, _OK, client.process(said) or b"")
    except (OSError, EOFError, MetastoreAuthenticationError):
        raise
    except Exception as error:  # of the library below, which has no class for all of them
        raise _refused(address, login, _said(error)) from error
    return SaslChannel(channel, from_server, client)


class SaslChannel:
    """Frames of a length and as many bytes, signed or encrypted if the two sides agreed so."""

    def __init__(self, channel: Channel, received: _Buffer, client: Any) -> None:
        self._channel = channel
        self._received = received
        self._client = client

    @property
    def socket(self) -> socket.socket:
        return self._channel.socket

    def framed(self, data: bytes) -> bytes:
        frame = self._passed(self._client.wrap, data)
        return struct.pack(">I", len(frame)) + frame

    def send(self, framed: bytes) -> None:
        self._channel.send(framed)

    def receive(self) -> bytes:
        """The next frame that is not empty; empty if the server closed the connection."""
        while True:
            try:
                (length,) = struct.unpack(">I", self._received.take(4))
            except EOFError:
                return b""
            data = self._passed(self._client.unwrap, self._received.take(length))
            if data:
                return data

    def _passed(self, wrap_or_unwrap: Callable[[bytes], bytes], data: bytes) -> bytes:
        try:
            return wrap_or_unwrap(data)
        except Exception as error:  # of the library below: a ticket that expired, a frame that is not the server's
            raise EOFError(f"the login is of no use any more: {_said(error)}") from error


class _Buffer:
    """The bytes of a channel, in pieces of the size asked for."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._data = bytearray()

    def take(self, length: int) -> bytes:
        while len(self._data) < length:
            part = self._channel.receive()
            if not part:
                raise EOFError("the server closed the connection")
            self._data += part
        taken = bytes(self._data[:length])
        del self._data[:length]
        return taken

    def take_login_message(self) -> tuple[int, bytes]:
        status, length = struct.unpack(">BI", self.take(5))
        if length > _MAX_LOGIN_MESSAGE:
            raise EOFError("its answer is no message of a login")
        return status, self.take(length)


def _send_status(channel: Channel, status: int, said: bytes) -> None:
    channel.send(struct.pack(">BI", status, len(said)) + said)


def _sasl_client(login: Login, host: str) -> Any:
    try:
        from puresasl.client import SASLClient
    except ImportError as error:
        raise _missing(login, error) from error
    if login.mechanism == "GSSAPI":
        try:
            import kerberos  # noqa: F401
        except ImportError as error:
            raise _missing(login, error) from error
        return SASLClient(host, login.service, "GSSAPI")
    # Of these two, the library can only prove who calls, and neither sign nor encrypt.
    properties = {"username": login.user, "password": login.password}
    return SASLClient(host, login.service, login.mechanism, qops=("auth",), **properties)


def _missing(login: Login, error: ImportError) -> MissingDependencyError:
    if login.mechanism == "GSSAPI":
        remedy = (
            "Run `pip install 'hms_iceberg[kerberos]'`, after `apt install libkrb5-dev` or the like of your system."
        )
    else:
        remedy = "Run `pip install pure-sasl`."
    return MissingDependencyError(
        f"A login to the metastore with {login.mechanism} needs more packages: {error}. {remedy}"
    )


def _refused(address: Address, login: Login, why: str) -> MetastoreAuthenticationError:
    if login.mechanism == "GSSAPI":
        remedy = (
            f"The server was taken for {login.service}@{login.host or address.host}. Check with `klist` that there is "
            "a valid ticket (`kinit`), and that this is the service and the host of the server's principal "
            "(hive.kerberos-service-name)."
        )
    elif login.mechanism == "PLAIN":
        remedy = f"Check name and password, and that the server asks for them and not for Kerberos ({KERBEROS})."
    else:
        remedy = "Check that the delegation token is of this metastore and did not expire."
    return MetastoreAuthenticationError(
        f"The metastore at {address} gave no access with {login.mechanism}: {why}. {remedy}"
    )


def _said(error: BaseException) -> str:
    """The text of an error; errors of Kerberos hold it in nested tuples of text and number."""
    parts = [str(part[0]) if isinstance(part, tuple) and part else str(part) for part in error.args]
    return ": ".join(parts) or type(error).__name__


# ----------------------------------------------------------------------------------------------------------------- HTTP


class HttpChannel:
    """Posts requests over a channel, which stays open between them; their answers are the bodies of the responses."""

    def __init__(self, channel: Channel, address: Address, settings: HttpSettings) -> None:
        self._channel = channel
        self._address = address
        self._settings = settings
        # One buffer for all answers: the start of the next one may come with the end of this one.
        self._received = _KeptOpen(_Received(channel))

    @property
    def socket(self) -> socket.socket:
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
        self._channel.send(framed)

    def receive(self) -> bytes:
        """The body of the next response; empty if the server closed the connection."""
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
    """A file that stays open when a response that was read to its end closes it."""

    def close(self) -> None:
        pass


class _Socket:
    """The part of a socket that a response asks for."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file

    def makefile(self, mode: str) -> io.BufferedReader:
        return self._file
