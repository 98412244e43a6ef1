"""The login to a NameNode: what it asks of clients, who a client is to it, and remedies if it is refused."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.arrow.storage.hdfs import tokens
from hms_iceberg.errors import ConfigurationError

_PRINCIPAL, _KEYTAB, _CACHE = "hdfs.kerberos-principal", "hdfs.kerberos-keytab", "hdfs.kerberos_ticket"


@dataclass(frozen=True, slots=True)
class Login:
    """A principal, and the keytab or cache of its tickets; without both, they are found as Hadoop finds them."""

    principal: str | None = None
    keytab: str | None = None
    cache: str | None = None

    @staticmethod
    def of(properties: Mapping[str, str], has_kerberos: bool) -> Login:
        """The login that catalog properties ask for. On a cluster with Kerberos `hdfs.user` chooses among the tickets
        of a cache, unless this process has tokens."""
        keytab, cache = properties.get(_KEYTAB) or None, properties.get(_CACHE) or None
        principal = properties.get(_PRINCIPAL) or None
        if keytab or cache or (has_kerberos and not os.environ.get(tokens.VARIABLE)):
            principal = principal or properties.get("hdfs.user") or None
        if (keytab or cache) and principal is None:
            raise ConfigurationError(
                f"A ticket cache or keytab is given without its principal: set the property {_PRINCIPAL}."
            )
        if keytab:
            _check_readable(keytab)
        return Login(principal, keytab, cache)

    @property
    def arguments(self) -> dict[str, str]:
        own = {"kerberos_principal": self.principal, "kerberos_keytab": self.keytab, "kerberos_cache": self.cache}
        return {name: value for name, value in own.items() if value}

    def advice(self, reason: str) -> str:
        """A remedy when Kerberos gives no ticket."""
        if self.keytab:
            return (
                f"the keytab {self.keytab} gives no Kerberos ticket to {self.principal} ({reason}): check {_PRINCIPAL} "
                f"against klist -kt {self.keytab}, and that the realm's server can be reached (krb5.conf)"
            )
        found = tokens.hdfs_tokens()
        other = ""
        if os.environ.get(tokens.VARIABLE):
            named = " and ".join(map(str, found)) or "no HDFS"
            other = f"; the tokens of {tokens.VARIABLE} are for {named}"
            other += ": start the job with a new one" if any(token.has_ended for token in found) else ""
        return (
            f"there is no valid Kerberos ticket ({reason}): run {self._kinit}, or set {_PRINCIPAL} and {_KEYTAB}{other}"
        )

    def advice_if_refused(self, reason: str) -> str:
        """A remedy when the NameNode refuses a ticket or token."""
        found = os.environ.get(tokens.VARIABLE)
        other = f"get a new token for {tokens.VARIABLE}, or " if found else ""
        return f"the NameNode does not accept this login ({reason}): {other}run {self._kinit}"

    @property
    def _kinit(self) -> str:
        return " ".join(["kinit", *(["-c", self.cache] if self.cache else []), self.principal or ""]).strip()


def _check_readable(keytab: str) -> None:
    try:
        with open(keytab.removeprefix("FILE:"), "rb"):
            return
    except OSError as error:
        raise ConfigurationError(
            f"Cannot read the keytab {keytab}: {error.strerror}. Set the property {_KEYTAB} to a file that this "
            "process may read."
        ) from error


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
    """The ways in which a NameNode lets clients in: `SIMPLE` (it believes anybody), `TOKEN` and `KERBEROS`; OSError
    without one."""
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
    """Whether Hadoop's settings say that the cluster uses Kerberos."""
    return settings.get(_AUTHENTICATION, "simple").lower() != "simple"


def protection_advice(settings: Mapping[str, str]) -> str | None:
    """A remedy when DataNodes end connections, as they do with clients that protect data in another way."""
    if not has_kerberos(settings) or settings.get(_PROTECTION):
        return None
    return (
        "if the cluster protects its data, the settings have to say so: set HADOOP_CONF_DIR to the folder of its "
        f"hdfs-site.xml, or the property {_PROTECTION} to its value there"
    )


def check_login(cluster: str, methods: frozenset[str], settings: Mapping[str, str]) -> None:
    """Refuses settings that do not fit to a cluster: hdfs-native would wait, or let anybody be anybody."""
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
