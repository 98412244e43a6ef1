"""`hms-iceberg sql`, `thriftserver` and `connect`: Spark for the user here, or for clients elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, TextIO, TypeVar

import click

from hms_iceberg.cli.catalog_options import catalog_options, key_values, open_catalog
from hms_iceberg.cli.migration.spark import quiet_spark
from hms_iceberg.cli.output import output_form, say
from hms_iceberg.cli.servers.prompt import split_statements
from hms_iceberg.cli.servers.statement_output import Interruptible, run_statement
from hms_iceberg.cli.stopping import stopped_by_signals
from hms_iceberg.spark.shell import SqlSession


def spark_options(command: Command) -> Command:
    """Adds the catalog's options, `--master` and `--conf` to a command."""
    conf = click.option(
        "--conf",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of Spark, such as spark.driver.memory=4g; may be repeated.",
    )
    master = click.option("--master", help="Where Spark runs, such as spark://host:7077.  [default: local[*]]")
    return catalog_options(master(conf(command)))


@contextmanager
def spark_on_catalog(
    name: str,
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    master: str | None,
    settings: tuple[str, ...],
    own_settings: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> Iterator[Any]:
    """The SparkSession that the options describe; a quiet one keeps its log to itself."""
    from hms_iceberg.spark.servers import spark_session

    with open_catalog(catalog_name, uri, properties) as catalog:
        found = dict(catalog.properties)
    with ExitStack() as stack:
        session = spark_session(found, {**(own_settings or {}), **key_values(settings)}, name, master)
        with quiet_spark() if quiet else nullcontext():
            spark = stack.enter_context(session)
        yield spark


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
    from hms_iceberg.spark.servers import require_free, thrift_server, thrift_settings

    require_free(host, port)
    with spark_on_catalog("hms-iceberg thriftserver", own_settings=thrift_settings(host, port), **options) as spark:
        _serve(thrift_server, spark, host, port, f"jdbc:hive2://{host}:{port}")


@click.command()
@_listening(15002)
def connect(host: str, port: int, **options: Any) -> None:
    """Serve clients of Spark Connect: plain `pip install pyspark[connect]` then uses Iceberg tables.

    It asks for no password unless `--conf spark.connect.authenticate.token=…` says so. SIGTERM ends it.

    Example: hms-iceberg connect --uri thrift://metastore:9083 --port 15002
    """
    from hms_iceberg.spark.servers import connect_server, connect_settings, require_free

    require_free(host, port)
    with spark_on_catalog("hms-iceberg connect", own_settings=connect_settings(host, port), **options) as spark:
        _serve(connect_server, spark, host, port, f"sc://{host}:{port}")


@click.command("compile-bridge")
def compile_bridge() -> None:
    """Compile the Java classes of the Spark bridge ahead, for this environment's PySpark and Java.

    Otherwise the first Spark session of each user compiles them, which takes some seconds: in a container whose home is
    empty, every time. Needs no metastore.

    Example: hms-iceberg compile-bridge
    """
    from hms_iceberg.spark.compiler import compile_ahead

    with quiet_spark():
        jar = compile_ahead()
    say(f"Compiled: {jar}")


def _serve(server: Serve, spark: Any, host: str, port: int, address: str) -> None:
    """Serves until SIGTERM or SIGINT comes."""
    with stopped_by_signals() as stop, server(spark, host, port):
        say(f"Listening: {address}")
        stop.wait()
        say("Stopping.")


@click.command()
@click.option("-e", "--execute", "texts", multiple=True, metavar="SQL", help="Run this, and end; may be repeated.")
@click.option("-f", "--file", "files", multiple=True, type=click.File(encoding="utf-8"), help="Run a file, and end.")
@click.option(
    "--output",
    type=click.Choice(["text", "json", "csv"]),
    callback=lambda ctx, param, value: output_form(ctx, param, value) or "text",
    help="How rows are told.  [default: text]",
)
@click.option("--timing", is_flag=True, help="Tell how long each statement took; at a prompt it is told anyway.")
@spark_options
def sql(texts: tuple[str, ...], files: tuple[TextIO, ...], output: str, timing: bool, **options: Any) -> None:
    """Run SQL: statements that are given, those of files or of a pipe, or what is typed at a prompt.

    Statements end with a semicolon. The first one that fails ends the command with exit code 1, but not at a prompt.
    The prompt has a history, and `help`. The tab key completes tables, columns, branches and tags. Ctrl-C ends the
    statement that runs. `exit` leaves. New databases are in the metastore's warehouse.

    Example: hms-iceberg sql -e "select count(*) from web.visits"
    """
    given = [*texts, *(file.read() for file in files)]
    interactive = not given and sys.stdin.isatty()
    if not given and not interactive:
        given = [sys.stdin.read()]
    with spark_on_catalog("hms-iceberg sql", quiet=True, **options) as spark:
        session = SqlSession(spark)
        if interactive:
            from hms_iceberg.cli.servers.prompt import Prompt

            Prompt(session, output).run()
            return
        interruptible = Interruptible(session)
        for text in given:
            whole, rest = split_statements(text)
            for statement in (*whole, rest):
                if statement:
                    interruptible.run(partial(run_statement, session, statement, output, timing))
