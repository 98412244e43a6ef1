"""Logins and encryption as a catalog's properties ask for them, and the frames of a login."""

from __future__ import annotations

import base64
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.config import catalog_properties
from hms_iceberg.errors import ConfigurationError, MetastoreAuthenticationError
from hms_iceberg.hms.connection.channel import Channel, SaslChannel, SocketChannel, _Buffer, log_in
from hms_iceberg.hms.connection.client_settings import Address, ClientSettings
from hms_iceberg.hms.connection.connection import ChannelTransport
from hms_iceberg.hms.connection.security import Login, Tls, login_from_properties, tls_from_properties

PLAIN = {
    "hive.metastore.client.auth.mode": "plain",
    "hive.metastore.client.plain.username": "etl",
    "hive.metastore.client.plain.password": "secret",
}


@pytest.mark.parametrize(
    ("properties", "login"),
    [
        ({}, None),
        ({"hive.kerberos-authentication": "false", "hive.metastore.client.auth.mode": "NOSASL"}, None),
        ({"hive.kerberos-authentication": "true"}, Login("GSSAPI", "hive")),
        ({"hive.kerberos-authentication": "true", "hive.kerberos-service-name": "hms"}, Login("GSSAPI", "hms")),
        ({"hive.metastore.client.auth.mode": "KERBEROS"}, Login("GSSAPI", "hive")),
        (
            {"hive.metastore.sasl.enabled": "true", "hive.metastore.kerberos.principal": "hms/_HOST@EXAMPLE.ORG"},
            Login("GSSAPI", "hms"),
        ),
        (
            {"hive.metastore.sasl.enabled": "true", "hive.metastore.kerberos.principal": "hms/vip.org@EXAMPLE.ORG"},
            Login("GSSAPI", "hms", "vip.org"),
        ),
        (PLAIN, Login("PLAIN", user="etl", password="secret")),
    ],
)
def test_hives_and_pyicebergs_names_of_a_login_are_understood(properties: dict[str, str], login: Login | None) -> None:
    assert login_from_properties(properties) == login


@pytest.mark.parametrize("length", [5, 127, 128, 300])
def test_a_delegation_token_is_taken_in_hadoops_text_form(length: int) -> None:
    name, secret = bytes(range(256)) * 2, b"s" * 20
    data = _counted(name[:length]) + _counted(secret) + b"\x15HIVE_DELEGATION_TOKEN\x00"
    login = login_from_properties(
        {"hive.metastore.delegation-token": base64.urlsafe_b64encode(data).decode().rstrip("=")}
    )
    assert login is not None
    assert (login.mechanism, login.service, login.host) == ("DIGEST-MD5", "null", "default")
    assert (base64.b64decode(login.user), base64.b64decode(login.password)) == (name[:length], secret)


def _counted(data: bytes) -> bytes:
    if len(data) < 128:
        return bytes([len(data)]) + data
    width = (len(data).bit_length() + 7) // 8
    return struct.pack(">b", -112 - width) + len(data).to_bytes(width, "big") + data


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"hive.metastore.client.auth.mode": "OAUTH"}, "expected one of NOSASL, PLAIN, KERBEROS, JWT"),
        ({"hive.metastore.client.auth.mode": "JWT"}, r"transport\.mode=http"),
        ({"hive.kerberos-authentication": "perhaps"}, "hive.kerberos-authentication"),
        ({**PLAIN, "hive.metastore.client.plain.password": ""}, r"hive\.metastore\.client\.plain\.password"),
        ({"hive.metastore.delegation-token": "no token"}, "not a delegation token"),
    ],
)
def test_a_login_that_cannot_be_is_refused_by_the_name_of_its_property(properties: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        ClientSettings.from_properties({"uri": "thrift://a", **properties})


def test_no_text_holds_the_password() -> None:
    assert "secret" not in repr(ClientSettings.from_properties({"uri": "thrift://a", **PLAIN}))


def test_a_java_key_store_is_refused_with_the_way_to_turn_it_into_pem(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed" + bytes(40))
    on = {"hive.metastore.use.SSL": "true"}
    with pytest.raises(ConfigurationError, match=r"keytool -exportcert -rfc -keystore .*trust\.jks"):
        tls_from_properties({**on, "hive.metastore.truststore.path": str(store)})
    with pytest.raises(ConfigurationError, match=r"ssl\.cabundle.*cannot be read"):
        tls_from_properties({**on, "ssl.cabundle": str(tmp_path / "absent.pem")})
    store.write_text("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    with pytest.raises(ConfigurationError, match="cannot be encrypted with"):
        tls_from_properties({**on, "ssl.cabundle": str(store)})
    assert tls_from_properties({"ssl.cabundle": "unused"}) is None


def test_a_configuration_file_switches_encryption_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(
        "catalog:\n  prod:\n    uri: thrift://a\n    hive.metastore.use.SSL: true\n"
        "    ssl:\n      check-hostname: false\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    settings = ClientSettings.from_properties(catalog_properties("prod", {}))
    assert settings.tls == Tls(check_host_name=False), "the file's names are read in lower case"


# ---------------------------------------------------------------------------------------------- frames of SASL


Script = Callable[[socket.socket], None]


@pytest.fixture
def logged_in() -> Iterator[Callable[[Script], Channel]]:
    """Logs in by name and password at a server that does what a script says."""
    pytest.importorskip("puresasl", reason="needs pip install 'hms_iceberg[kerberos]'")
    ours, theirs = socket.socketpair()
    threads = []

    def log_in_at(script: Script) -> Channel:
        def serve() -> None:
            assert _message(theirs) == (1, b"PLAIN")
            assert _message(theirs) == (2, b"\0etl\0secret")
            script(theirs)

        threads.append(threading.Thread(target=serve))
        threads[0].start()
        ours.settimeout(5)
        return log_in(SocketChannel(ours), Address("a"), Login("PLAIN", user="etl", password="secret"))

    yield log_in_at
    for thread in threads:
        thread.join()
    ours.close()
    theirs.close()


def _message(connection: socket.socket) -> tuple[int, bytes]:
    status, length = struct.unpack(">BI", connection.recv(5, socket.MSG_WAITALL))
    return status, connection.recv(length, socket.MSG_WAITALL)


def test_frames_are_put_together_whatever_pieces_they_come_in(logged_in: Any) -> None:
    big = bytes(range(256)) * 1000

    def serve(connection: socket.socket) -> None:
        answer = struct.pack(">BI", 5, 2) + b"ok" + struct.pack(">I", 0) + struct.pack(">I", len(big)) + big
        for start in range(0, len(answer), 7001):
            connection.sendall(answer[start : start + 7001])
        (length,) = struct.unpack(">I", connection.recv(4, socket.MSG_WAITALL))
        assert connection.recv(length, socket.MSG_WAITALL) == big
        connection.shutdown(socket.SHUT_RDWR)

    channel = logged_in(serve)
    assert channel.receive() == big
    channel.send(channel.framed(big))
    assert channel.receive() == b""


def test_a_login_that_expired_breaks_the_connection_before_a_byte_is_sent() -> None:
    class Expired:
        def wrap(self, data: bytes) -> bytes:
            raise RuntimeError(("The context has expired", 786432), ("Success", 100001))

        unwrap = wrap

    ours, theirs = socket.socketpair()
    with ours, theirs:
        plain = SocketChannel(ours)
        received = _Buffer(plain)
        transport = ChannelTransport(SaslChannel(plain, received, Expired()))
        transport.write(b"request")
        with pytest.raises(EOFError, match="The context has expired"):
            transport.flush()
        assert not transport.request_left
        theirs.sendall(struct.pack(">I", 3) + b"abc")
        with pytest.raises(EOFError, match="of no use any more"):
            transport.read(1)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (struct.pack(">BI", 3, 5) + b"no! x", MetastoreAuthenticationError, "gave no access with PLAIN: no! x"),
        (struct.pack(">BI", 9, 0), MetastoreAuthenticationError, "status 9"),
        (b"\x80\x01\x00\x01\x7f", EOFError, "closed|no message"),
        (b"", EOFError, "closed"),
    ],
)
def test_a_login_that_is_refused_or_broken_off_says_so(
    logged_in: Any, answer: bytes, error: type[Exception], said: str
) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_RDWR)

    with pytest.raises(error, match=said) as caught:
        logged_in(serve)
    assert "secret" not in str(caught.value)
