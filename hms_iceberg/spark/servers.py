"""Servers on an extended session: Spark's Thrift server for JDBC and ODBC, and Spark Connect."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import ConfigurationError, MissingDependencyError, UnsupportedError
from hms_iceberg.spark.spark_versions import release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST_OF_4 = (4, 0)
_LOOPBACK = "127.0.0.1"
_SECONDS_TO_START = 60
# Spark tells them its own names; ours are what the session needs to find the metastore.
_NOT_OF_STORAGE = ("uri", "type", "warehouse")


@contextmanager
def spark_session(
    properties: Mapping[str, str], settings: Mapping[str, str], name: str, master: str | None = None
) -> Iterator[SparkSession]:
    """An extended session on the metastore of a catalog, which ends with its Spark; `settings` win. `master` is that of
    the settings, or else this machine, by default."""
    try:
        from pyspark.sql import SparkSession as Session
    except ImportError as error:
        raise MissingDependencyError("This needs PySpark: pip install 'hms_iceberg[spark]'") from error
    from hms_iceberg.spark.session import configure
    from hms_iceberg.spark.workers import is_local, own_python

    if "uri" not in properties:
        raise ConfigurationError("Spark needs a Hive Metastore. Give --uri thrift://host:9083.")
    master = master or settings.get("spark.master") or "local[*]"
    local = {"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK} if is_local(master) else {}
    own = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.hadoop.hive.metastore.uris": properties["uri"],
        **({"spark.sql.warehouse.dir": properties["warehouse"]} if "warehouse" in properties else {}),
        **local,
    }
    builder = Session.builder.appName(name).master(master)
    for key, value in {**own, **settings}.items():
        builder = builder.config(key, value)
    storage = {key: value for key, value in properties.items() if key not in _NOT_OF_STORAGE}
    with own_python(master, dict(settings)):  # of Connect's clients
        session = configure(builder, storage).getOrCreate()
    try:
        yield session
    finally:
        session.sparkContext.cancelAllJobs()
        session.stop()


def require_free(host: str, port: int) -> None:
    """Refuses a port that is taken, or a host that is not this machine, before Spark is started for it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        said = error.strerror or str(error)
        raise ConfigurationError(f"Cannot listen at {host}:{port}: {said}. Give another --host or --port.") from error


def thrift_settings(host: str, port: int) -> dict[str, str]:
    """The settings that a session of a Thrift server is built with."""
    return {
        "spark.hadoop.hive.server2.thrift.bind.host": host,
        "spark.hadoop.hive.server2.thrift.port": str(port),
        "spark.hms_iceberg.answers": "hive",  # its clients take the first column for the name
    }


@contextmanager
def thrift_server(spark: SparkSession, host: str, port: int) -> Iterator[None]:
    """Spark's Thrift server within the block, for a session with `thrift_settings`; clients have sessions like it."""
    gateway: Any = spark.sparkContext._gateway
    companion = _object(spark, "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2$")
    gateway.jvm.hms_iceberg.bridge.session.ThriftSessions.prepare(spark._jsparkSession)
    if release(spark.version) < _FIRST_OF_4:
        server = companion.startWithContext(spark._jsparkSession.sqlContext())
    else:
        server = companion.startWithSparkSession(spark._jsparkSession, False)
    try:
        _wait(host, port)
        yield
    finally:
        server.stop()


def connect_settings(host: str, port: int) -> dict[str, str]:
    """The settings that a session of a Spark Connect server is built with."""
    return {"spark.connect.grpc.binding.address": host, "spark.connect.grpc.binding.port": str(port)}


@contextmanager
def connect_server(spark: SparkSession, host: str, port: int) -> Iterator[None]:
    """A Spark Connect server within the block, for one with `connect_settings`; clients have sessions like it."""
    if release(spark.version) < _FIRST_OF_4:
        raise UnsupportedError(
            f"PySpark {spark.version} comes without the server of Spark Connect. Use PySpark 4, or the Thrift server: "
            "hms-iceberg thriftserver."
        )
    service = _object(spark, "org.apache.spark.sql.connect.service.SparkConnectService$")
    context: Any = spark.sparkContext
    service.start(context._jsc.sc())
    try:
        _wait(host, port)
        yield
    finally:
        service.stop(getattr(service, "stop$default$1")(), getattr(service, "stop$default$2")())


def _object(spark: SparkSession, name: str) -> Any:
    """A singleton object of Scala."""
    gateway: Any = spark.sparkContext._gateway
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        found = gateway.jvm.java.lang.Class.forName(name, True, loader)
    except Exception as error:
        raise UnsupportedError(f"This Spark has no {name.rstrip('$')}: install the whole of PySpark.") from error
    return found.getField("MODULE$").get(None)


def _wait(host: str, port: int) -> None:
    address = (_LOOPBACK if host in ("0.0.0.0", "::") else host, port)
    until = time.monotonic() + _SECONDS_TO_START
    while True:
        try:
            socket.create_connection(address, timeout=1).close()
            return
        except OSError as error:
            if time.monotonic() > until:
                raise UnsupportedError(
                    f"The server does not listen at {host}:{port} after {_SECONDS_TO_START} s. Look at its log above; "
                    "is the port taken?"
                ) from error
            time.sleep(0.1)
