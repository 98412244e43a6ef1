"""What a NameNode asks of those who connect: it says so before anybody has logged in."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from hms_iceberg.errors import ConfigurationError

_CONNECT_SECONDS = 3.0
_ANSWER_SECONDS = 8.0
_LONGEST_ANSWER = 2**16
# Hadoop's RPC, version 9, with SASL; then a header, and the message that asks for the ways to log in.
_QUESTION = (
    b"hrpc\x09\x00\xdf" + b"\x00\x00\x00\x0e" + b"\x0a\x08\x02\x10\x00\x18\x41\x22\x00\x28\x01" + b"\x02\x10\x01"
)
_METHODS = {"SIMPLE": b"\x06SIMPLE", "TOKEN": b"\x05TOKEN", "KERBEROS": b"\x08KERBEROS"}
_AUTHENTICATION = "hadoop.security.authentication"
_PROTECTION = "dfs.data.transfer.protection"
_FALLBACK = "ipc.client.fallback-to-simple-auth-allowed"


def login_methods(host: str, port: int) -> frozenset[str]:
    """The ways in which a NameNode lets clients in.

    Returns:
        `SIMPLE` (it believes anybody), `TOKEN` and `KERBEROS`.

    Raises:
        OSError: nobody answers there, or no NameNode does.
    """
    with socket.create_connection((host, port), _CONNECT_SECONDS) as connection:
        connection.settimeout(_ANSWER_SECONDS)
        try:
            connection.sendall(_QUESTION)
            answer = _whole_answer(connection)
        except TimeoutError as error:
            raise OSError(f"it takes connections and has not answered for {_ANSWER_SECONDS:g} seconds") from error
    methods = frozenset(name for name, sign in _METHODS.items() if sign in answer)
    if not methods:
        raise OSError("what answers there is no NameNode")
    return methods


def _whole_answer(connection: socket.socket) -> bytes:
    answer = b""
    wanted = 4
    while len(answer) < wanted <= _LONGEST_ANSWER:
        part = connection.recv(_LONGEST_ANSWER)
        if not part:
            break
        answer += part
        if len(answer) >= 4:
            wanted = 4 + int.from_bytes(answer[:4], "big")
    return answer


def has_kerberos(settings: Mapping[str, str]) -> bool:
    """Whether settings of Hadoop say that the cluster knows its users."""
    return settings.get(_AUTHENTICATION, "simple").lower() != "simple"


def protection_advice(settings: Mapping[str, str]) -> str | None:
    """What to do if DataNodes end connections: they say nothing to clients that do not protect data as they do."""
    if not has_kerberos(settings) or settings.get(_PROTECTION):
        return None
    return (
        "if the cluster protects its data, the settings have to say so: set HADOOP_CONF_DIR to the folder of its "
        f"hdfs-site.xml, or the property {_PROTECTION} to its value there"
    )


def check_login(cluster: str, methods: frozenset[str], settings: Mapping[str, str]) -> None:
    """Refuses settings that do not fit to a cluster: hdfs-native would wait, or let anybody be anybody.

    Raises:
        ConfigurationError: one of them has Kerberos and the other has not.
    """
    if not has_kerberos(settings):
        if "SIMPLE" not in methods:
            raise ConfigurationError(
                f"Cannot use {cluster}: the cluster has Kerberos, and the settings do not say so. Set HADOOP_CONF_DIR "
                f"to the folder of its core-site.xml and hdfs-site.xml, or the property {_AUTHENTICATION}=kerberos."
            )
    elif "KERBEROS" not in methods and settings.get(_FALLBACK, "false").lower() != "true":
        raise ConfigurationError(
            f"Cannot use {cluster}: {_AUTHENTICATION} is kerberos, and the cluster has no Kerberos. Remove that "
            f"setting, or allow it with {_FALLBACK}=true."
        )
