"""Settings of the client, read from a catalog's properties, and the user that it is.

The names are Iceberg's and Hive's own, so that existing configuration works.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.hms.connection.http_settings import HttpSettings, http_from_properties
from hms_iceberg.hms.connection.property_reader import PropertyReader
from hms_iceberg.hms.connection.security import Login, Tls, login_from_properties, tls_from_properties

DEFAULT_PORT = 9083


@dataclass(frozen=True)
class Address:
    host: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_uri(uri: str) -> tuple[Address, ...]:
    """The addresses of `thrift://a:9083,b:9083` or `thrift://a:9083,thrift://b:9083`; the port is 9083 by default."""
    addresses = []
    for part in (uri or "").split(","):
        match = re.fullmatch(r"\s*(?:thrift://)?(?:\[([^\]]+)\]|([^:/\s\[\]]+))(?::(\d{1,5}))?/?\s*", part)
        if match is None or not 0 < int(match[3] or DEFAULT_PORT) < 65536:
            raise ConfigurationError(
                f"Not the URI of a Hive Metastore: {uri!r}. Expected thrift://host:9083, or several as "
                "thrift://a:9083,b:9083."
            )
        addresses.append(Address(match[1] or match[2], int(match[3] or DEFAULT_PORT)))
    return tuple(addresses)


@dataclass(frozen=True)
class ClientSettings:
    addresses: tuple[Address, ...]  # the next one is tried when one does not answer
    connect_timeout: float = 10.0  # seconds to wait for a connection (`hive.metastore.client.connection.timeout`)
    socket_timeout: float = 600.0  # seconds to wait for an answer (`hive.metastore.client.socket.timeout`)
    # how often a connection, or a call that may be repeated, is tried (`hive.metastore.connect.retries`)
    attempts: int = 3
    # seconds between two rounds over the addresses (`hive.metastore.client.connect.retry.delay`)
    retry_delay: float = 1.0
    idle_connections: int = 4  # connections kept open while nobody uses them (`clients`)
    # user and groups (`user:group1,group2`) whom the calls act for (`ugi`); the server's choice if empty, and without
    # meaning if the login names the user
    user: str = ""
    tls: Tls | None = None  # encryption; None for none (see `hms_iceberg.hms.connection.security`)
    login: Login | None = None  # authentication; None for none
    http: HttpSettings | None = None  # how requests are posted; None for Thrift's own transport

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ClientSettings:
        if not properties.get("uri"):
            raise ConfigurationError("A Hive Metastore needs the property `uri`, such as thrift://host:9083.")
        seconds = PropertyReader(properties)
        return cls(
            addresses=parse_uri(properties["uri"]),
            connect_timeout=seconds.seconds("hive.metastore.client.connection.timeout", cls.connect_timeout),
            socket_timeout=seconds.seconds("hive.metastore.client.socket.timeout", cls.socket_timeout),
            attempts=max(1, seconds.integer("hive.metastore.connect.retries", cls.attempts)),
            retry_delay=seconds.seconds("hive.metastore.client.connect.retry.delay", cls.retry_delay),
            idle_connections=max(1, seconds.integer("clients", cls.idle_connections)),
            user=properties.get("ugi", ""),
            tls=tls_from_properties(properties),
            login=login_from_properties(properties),
            http=http_from_properties(properties, properties.get("ugi") or current_user()),
        )


def current_user() -> str:
    """Name of the user that this process runs as; `unknown` if the system has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
