"""Settings of the client, the locks and the tables' rows, read from a catalog's properties.

The names are Iceberg's and Hive's own, so that existing configuration works.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.hms.property_reader import PropertyReader
from hms_iceberg.hms.security import Login, Tls, login_from_properties, tls_from_properties

DEFAULT_PORT = 9083


@dataclass(frozen=True)
class Address:
    """Host and port of one metastore."""

    host: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_uri(uri: str) -> tuple[Address, ...]:
    """The addresses of `thrift://a:9083,b:9083` or `thrift://a:9083,thrift://b:9083`; the port is 9083 by default.

    Raises:
        ConfigurationError: not such a URI.
    """
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
    """How to reach the metastore.

    Attributes:
        addresses: where it is; the next one is tried when one does not answer.
        connect_timeout: seconds to wait for a connection (`hive.metastore.client.connection.timeout`).
        socket_timeout: seconds to wait for an answer (`hive.metastore.client.socket.timeout`).
        attempts: how often a connection, or a call that may be repeated, is tried (`hive.metastore.connect.retries`).
        retry_delay: seconds between two rounds over the addresses (`hive.metastore.client.connect.retry.delay`).
        idle_connections: connections kept open while nobody uses them (`clients`).
        user: whom the calls act for, with groups as `user:group1,group2` (`ugi`); the server's choice where empty, and
            of no meaning where the login says who calls.
        tls: how the connection is encrypted; None where it is not (see `hms_iceberg.hms.security`).
        login: how the client proves who it is; None where nobody asks.
    """

    addresses: tuple[Address, ...]
    connect_timeout: float = 10.0
    socket_timeout: float = 600.0
    attempts: int = 3
    retry_delay: float = 1.0
    idle_connections: int = 4
    user: str = ""
    tls: Tls | None = None
    login: Login | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ClientSettings:
        """Reads them from a catalog's properties.

        Raises:
            ConfigurationError: a value that cannot be read; names the property.
        """
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
        )


@dataclass(frozen=True)
class LockSettings:
    """How a table's lock is waited for and kept; all times in seconds.

    Attributes:
        timeout: for all of the waiting together (`iceberg.hive.lock-timeout-ms`).
        creation_timeout: part of it that may go into the lock's creation (`iceberg.hive.lock-creation-timeout-ms`).
        creation_min_wait, creation_max_wait: between two tries to create it (`iceberg.hive.lock-creation-*-wait-ms`).
        check_min_wait, check_max_wait: between two looks whether it is granted (`iceberg.hive.lock-check-*-wait-ms`).
        heartbeat_interval: longest time without a sign of life (`iceberg.hive.lock-heartbeat-interval-ms`); it must
            be below the server's `hive.txn.timeout`.
        compare: whether a server that can is to compare as well while the lock is held, so that a request that arrives
            late harms nobody; it is found out by trying (`iceberg.hive.lock-compare-enabled`).
    """

    timeout: float = 180.0
    creation_timeout: float = 180.0
    creation_min_wait: float = 0.05
    creation_max_wait: float = 5.0
    check_min_wait: float = 0.05
    check_max_wait: float = 5.0
    heartbeat_interval: float = 240.0
    compare: bool = True

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> LockSettings:
        """Reads them from a catalog's properties.

        Raises:
            ConfigurationError: a value that is not a number of milliseconds; names the property.
        """
        reader = PropertyReader(properties)

        def ms(name: str, default: float) -> float:
            return reader.milliseconds(f"iceberg.hive.{name}-ms", default)

        return cls(
            timeout=ms("lock-timeout", cls.timeout),
            creation_timeout=ms("lock-creation-timeout", cls.creation_timeout),
            creation_min_wait=ms("lock-creation-min-wait", cls.creation_min_wait),
            creation_max_wait=ms("lock-creation-max-wait", cls.creation_max_wait),
            check_min_wait=ms("lock-check-min-wait", cls.check_min_wait),
            check_max_wait=ms("lock-check-max-wait", cls.check_max_wait),
            heartbeat_interval=max(0.01, ms("lock-heartbeat-interval", cls.heartbeat_interval)),
            compare=reader.boolean("iceberg.hive.lock-compare-enabled", cls.compare),
        )


@dataclass(frozen=True)
class RowSettings:
    """How a table is shown in its row of the metastore.

    Attributes:
        max_value_length: longest parameter value or column type, in characters
            (`iceberg.hive.table-property-max-size`; 4000 for databases made before Hive 2.3). With 0, schema, spec,
            order and snapshot are not shown at all, and there is no limit for the rest.
        hive_engine: whether Hive itself shall read the tables (`iceberg.engine.hive.enabled`).
        local_time_zone: whether a timestamp with zone is shown as Hive 3's `timestamp with local time zone`
            (`hive.hive2-compatible=false`). Spark cannot parse that name, so it is not the default.
    """

    max_value_length: int = 32672
    hive_engine: bool = False
    local_time_zone: bool = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> RowSettings:
        """Reads them from a catalog's properties.

        Raises:
            ConfigurationError: a value that cannot be read; names the property.
        """
        reader = PropertyReader(properties)
        legacy = reader.integer("hive.table-property-max-size", cls.max_value_length)
        return cls(
            max_value_length=max(0, reader.integer("iceberg.hive.table-property-max-size", legacy)),
            hive_engine=reader.boolean("iceberg.engine.hive.enabled", False),
            local_time_zone=not reader.boolean("hive.hive2-compatible", True),
        )


def current_user() -> str:
    """Name of the user that this process runs as; `unknown` where the system has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
