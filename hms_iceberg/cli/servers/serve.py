"""`hms-iceberg thriftserver` and `connect`: Iceberg and Hive tables for clients elsewhere, without a JAR."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import click

from hms_iceberg.cli.servers.session_options import spark_on_catalog, spark_options

Command = TypeVar("Command", bound=Callable[..., Any])
Serve = Callable[[Any, str, int], AbstractContextManager[None]]


def _listening(default_port: int) -> Callable[[Command], Command]:
    def decorated(command: Command) -> Command:
        host = click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
        port = click.option("--port", default=default_port, show_default=True, type=click.IntRange(1, 65535))
        return host(port(spark_options(command)))

    return decorated


@click.command()
@_listening(10000)
def thriftserver(host: str, port: int, **options: Any) -> None:
    """Serve JDBC and ODBC clients: BI tools, and beeline.

    Spark's own Thrift server, in which Iceberg tables are read and written. It asks for no password unless Hive's
    settings (`--conf spark.hadoop.hive.server2.authentication=…`) say so. SIGTERM ends it.

    Example: hms-iceberg thriftserver --uri thrift://metastore:9083 --port 10000
    """
    from hms_iceberg.spark.servers import thrift_server, thrift_settings

    with spark_on_catalog("hms-iceberg thriftserver", own_settings=thrift_settings(host, port), **options) as spark:
        _serve(thrift_server, spark, host, port, f"jdbc:hive2://{host}:{port}")


@click.command()
@_listening(15002)
def connect(host: str, port: int, **options: Any) -> None:
    """Serve clients of Spark Connect: plain `pip install pyspark[connect]` then uses Iceberg tables.

    It asks for no password unless `--conf spark.connect.authenticate.token=…` says so. SIGTERM ends it.

    Example: hms-iceberg connect --uri thrift://metastore:9083 --port 15002
    """
    from hms_iceberg.spark.servers import connect_server, connect_settings

    with spark_on_catalog("hms-iceberg connect", own_settings=connect_settings(host, port), **options) as spark:
        _serve(connect_server, spark, host, port, f"sc://{host}:{port}")


def _serve(server: Serve, spark: Any, host: str, port: int, address: str) -> None:
    """Serves until SIGTERM or SIGINT comes."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with server(spark, host, port):
            click.echo(f"Listening: {address}")
            stop.wait()
            click.echo("Stopping.")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
