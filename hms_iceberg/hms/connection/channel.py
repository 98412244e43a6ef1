"""What carries the bytes of one connection: a socket, encrypted or not, and a login with SASL over it.

The login and its frames are those of Thrift's SASL transport (THRIFT-876), which Hive's server speaks.
"""

from __future__ import annotations

import logging
import select
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, Protocol

from hms_iceberg.errors import MetastoreAuthenticationError, MissingDependencyError
from hms_iceberg.hms.connection.client_settings import Address, ClientSettings
from hms_iceberg.hms.connection.security import CA_FILE, CHECK_HOST_NAME, KERBEROS, USE_TLS, Login, Tls

logger = logging.getLogger(__name__)

_READ_SIZE = 65536
_MAX_LOGIN_MESSAGE = 1 << 20
_START, _OK, _BAD, _ERROR, _COMPLETE = range(1, 6)


class Channel(Protocol):
    """Bytes to and from a server."""

    @property
    def socket(self) -> socket.socket:
        """The socket that the bytes go over."""
        ...

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
    """Connects, encrypts and logs in as the settings say; afterwards the channel has the time-out of an answer.

    Args:
        address: host and port.
        settings: TLS, login and time-outs.

    Raises:
        OSError: nobody answers there, or not in time.
        EOFError: the server closed the connection in the middle of the login.
        MetastoreAuthenticationError: the server is not who it should be, or refuses the login.
        MissingDependencyError: no library for the login.
    """
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
    """A channel over a plain socket.

    Args:
        connection: the socket.
        patience: seconds after which a warning says that an answer is still waited for.
    """

    def __init__(self, connection: socket.socket, patience: float = 10.0) -> None:
        self.socket = connection
        self._patience = patience

    def framed(self, data: bytes) -> bytes:
        """The data, unchanged: a plain socket needs no frames."""
        return data

    def send(self, framed: bytes) -> None:
        """Sends all of it."""
        self.socket.sendall(framed)

    def receive(self) -> bytes:
        """Received bytes; empty if the server closed the connection."""
        if self._is_silent():
            host, port = self.socket.getpeername()[:2]
            logger.warning(
                "The metastore at %s:%s took a request and has not answered for %.0f s. It is waited for, up to %.0f s "
                "(hive.metastore.client.socket.timeout). Check that a Hive Metastore listens there, and its load.",
                host,
                port,
                self._patience,
                self.socket.gettimeout() or 0,
            )
        return self.socket.recv(_READ_SIZE)

    def _is_silent(self) -> bool:
        """Whether nothing came within the patience, and more time than that was given."""
        timeout = self.socket.gettimeout()
        if timeout is None or timeout <= self._patience:
            return False
        if isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            return False
        readable, _, broken = select.select([self.socket], [], [self.socket], self._patience)
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
    """Authenticates the client.

    Args:
        channel: the open channel.
        address: host and port.
        login: who the client is.

    Returns:
        the channel to use from then on, which may encrypt what is sent.

    Raises:
        OSError, EOFError: the connection broke.
        MetastoreAuthenticationError: the server refused, or the client has nothing to show.
        MissingDependencyError: no library for the login.
    """
    from_server = _Buffer(channel)
    login = login.of_process()
    client = _sasl_client(login, login.host or address.host)
    try:
        _tell(channel, _START, login.mechanism.encode())
        _tell(channel, _OK, client.process() or b"")
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
            _tell(channel, _OK, client.process(said) or b"")
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
        """The socket that the bytes go over."""
        return self._channel.socket

    def framed(self, data: bytes) -> bytes:
        """The data as one frame."""
        frame = self._passed(self._client.wrap, data)
        return struct.pack(">I", len(frame)) + frame

    def send(self, framed: bytes) -> None:
        """Sends all of a frame."""
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
    """Bytes of a channel, as many as asked for."""

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


def _tell(channel: Channel, status: int, said: bytes) -> None:
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
