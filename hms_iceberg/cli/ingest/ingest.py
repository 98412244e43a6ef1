"""`hms-iceberg ingest`: apply the events of Kafka topics to tables."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import Duration, Size, catalog_options, complete_table, key_values, open_catalog
from hms_iceberg.cli.metrics import metrics_options
from hms_iceberg.cli.output import OUTPUT_OPTION, counted, log_options, say, shown
from hms_iceberg.cli.stopping import stopped_by_signals
from hms_iceberg.errors import IcebergError
from hms_iceberg.printable import log_to_stderr

if TYPE_CHECKING:
    from hms_iceberg.ingest.settings import BatchReport, Observer, Settings

_TIME = "%Y-%m-%d %H:%M:%S"
_REGISTRY = "schema.registry."
_UNITS = {"ms": 10**6, "us": 10**3, "ns": 1}


@click.command()
@catalog_options
@click.option("--topic", "topics", multiple=True, required=True, help="A topic of Kafka; may be repeated.")
@click.option("--brokers", metavar="HOST:PORT,...", help="Where Kafka is, unless --kafka-file says so.")
@click.option(
    "--table",
    required=True,
    metavar="DB.TABLE",
    shell_complete=complete_table,
    help="Where events go; fields in braces, such as 'shop.{source.table}', make several tables of a topic.",
)
@click.option("--name", help="Under which the tables keep their offsets; needed for several topics [the topic].")
@click.option(
    "--format",
    "form",
    type=click.Choice(["debezium-json", "debezium-avro", "json", "avro"]),
    default="debezium-json",
    show_default=True,
    help="What the events are.",
)
@click.option("--key", "keys", metavar="COLUMN,...", help="What identifies a row [the table's identifier fields].")
@click.option("--operation-column", metavar="FIELD", help="Of json and avro: the field with c, u, d, or such words.")
@click.option("--time-unit", type=click.Choice(list(_UNITS)), help="Of numbers in columns of times without a schema.")
@click.option("--create", is_flag=True, help="Create tables that are missing.")
@click.option("--evolve", is_flag=True, help="Add columns, and widen their types, as events need it.")
@click.option("--dead-letters", metavar="DB.TABLE", help="Keep events that are no changes here, rather than stop.")
@click.option(
    "--from",
    "begin",
    type=click.Choice(["earliest", "latest"]),
    default="earliest",
    show_default=True,
    help="Where the very first start begins.",
)
@click.option("--accept-gap", is_flag=True, help="Read on behind events that the broker has deleted already.")
@click.option("--once", is_flag=True, help="End at what the topics have now, rather than go on.")
@click.option("--every", type=Duration(), default="10s", show_default=True, help="How long events are collected.")
@click.option("--max-rows", type=click.IntRange(1), default=100_000, show_default=True, help="Events in a commit.")
@click.option("--max-bytes", type=Size(), default="64M", show_default=True, help="Bytes of events in a commit.")
@click.option("--schema-registry", metavar="URL", help="Where Avro's schemas are.")
@click.option(
    "--kafka-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="KEY=VALUE lines of librdkafka, and of the registry behind 'schema.registry.': passwords belong here.",
)
@click.option("--kafka", "kafka", multiple=True, metavar="KEY=VALUE", help="A setting of librdkafka; may be repeated.")
@metrics_options("Where Prometheus finds /metrics, and probes /health and /ready.")
@log_options("WARNING")
@OUTPUT_OPTION
def ingest(
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    once: bool,
    metrics_port: int | None,
    metrics_host: str,
    log_format: str,
    log_level: str,
    output: str,
    **given: Any,
) -> None:
    """Apply the events of Kafka topics to tables, exactly once.

    The offsets are part of each commit, over all tables that it changes; a start reads on from them. SIGTERM and SIGINT
    end it behind the batch at hand. An event that is no change of a table stops it before anything of its batch is
    written, and is named, unless --dead-letters keeps it.

    Example: hms-iceberg ingest --brokers kafka:9092 --topic shop.orders --table shop.orders --create --evolve
    """
    from hms_iceberg.ingest.ingest import Ingest

    settings = _settings(**given)
    log_to_stderr(log_level.upper(), "%(asctime)s %(levelname)s: %(message)s", _TIME, log_format)
    printer = _Printer(output)
    with (
        stopped_by_signals() as stop,
        open_catalog(catalog_name, uri, properties, may_be_away=not once) as catalog,
        _observed(printer, metrics_host, metrics_port) as observer,
    ):
        work = Ingest(catalog, settings, observer, stop)
        work.run(once)
        printer.end(work.offsets, stop.number is not None)
    if once and stop.number is not None:
        raise click.exceptions.Exit(128 + stop.number)


def _settings(
    topics: tuple[str, ...],
    brokers: str | None,
    table: str,
    name: str | None,
    form: str,
    keys: str | None,
    operation_column: str | None,
    time_unit: str | None,
    create: bool,
    evolve: bool,
    dead_letters: str | None,
    begin: Any,
    accept_gap: bool,
    every: float,
    max_rows: int,
    max_bytes: int,
    schema_registry: str | None,
    kafka_file: Path | None,
    kafka: tuple[str, ...],
) -> Settings:
    from hms_iceberg.ingest.routing import TableTemplate
    from hms_iceberg.ingest.settings import Settings
    from hms_iceberg.ingest.table_rows import Rules

    if name is None and len(topics) > 1:
        raise click.UsageError("several topics need --name, which stays the same when a topic is added")
    if every == 0:
        raise click.UsageError("--every needs a time above 0, such as 10s")
    client, registry = _client_settings(kafka_file, kafka)
    if brokers is not None:
        client["bootstrap.servers"] = brokers
    if schema_registry is not None:
        registry["url"] = schema_registry
    columns = tuple(each.strip() for each in (keys or "").split(",") if each.strip())
    unit = None if time_unit is None else _UNITS[time_unit]
    return Settings(
        topics=topics,
        table=TableTemplate(table),
        name=name or topics[0],
        kafka=client,
        registry=registry,
        format=form,
        operation_column=operation_column,
        rules=Rules(columns, evolve, unit),
        create=create,
        dead_letters=dead_letters,
        begin=begin,
        accept_gap=accept_gap,
        every_seconds=every,
        max_rows=max_rows,
        max_bytes=max_bytes,
    )


def _client_settings(file: Path | None, words: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """The settings of Kafka's client, and those of the registry's; words of the command line win."""
    lines = [] if file is None else file.read_text(encoding="utf-8").splitlines()
    of_file = tuple(line for line in map(str.strip, lines) if line and not line.startswith("#"))
    found = {**key_values(of_file), **key_values(words)}
    registry = {key.removeprefix(_REGISTRY): value.strip() for key, value in found.items() if key.startswith(_REGISTRY)}
    return {key: value.strip() for key, value in found.items() if not key.startswith(_REGISTRY)}, registry


class _Printer:
    """Prints each batch: a line of text, or of JSON."""

    def __init__(self, output: str) -> None:
        self._is_json = output == "json"

    def batch(self, report: BatchReport) -> None:
        if self._is_json:
            self._event("batch", {**asdict(report), "seconds": round(report.seconds, 3)})
            return
        rows = ", ".join(f"{counted(count, 'change')} of {table}" for table, count in report.rows.items())
        letters = f", {counted(report.dead_letters, 'dead letter')}" if report.dead_letters else ""
        behind = f", {report.lag:,} behind" if report.lag else ""
        self._echo(f"{time.strftime(_TIME)} {rows or 'offsets'}{letters} in {report.seconds:.2f} s{behind}")

    def reading(self, lag: int, at_hand: int) -> None:
        """Prints nothing: there would be a line whenever nothing happens."""

    def failure(self, error: IcebergError) -> None:
        if self._is_json:
            self._event("failure", {"type": type(error).__name__, "message": str(error)})

    def end(self, offsets: Mapping[str, int], is_stopped: bool) -> None:
        """Tells where the tables are."""
        if self._is_json:
            self._event("stopped" if is_stopped else "end", {"offsets": dict(offsets)})
            return
        at = ", ".join(f"{name} at {offset:,}" for name, offset in offsets.items())
        self._echo(f"{'Stopped' if is_stopped else 'At the end'}: {at}.")

    def _event(self, event: str, told: Mapping[str, Any]) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._echo(json.dumps({"event": event, "time": now, **told}))

    def _echo(self, line: str) -> None:
        say(shown(line))
        sys.stdout.flush()


class _Both:
    """Tells two observers."""

    def __init__(self, first: Observer, second: Observer) -> None:
        self._both = (first, second)

    def batch(self, report: BatchReport) -> None:
        for each in self._both:
            each.batch(report)

    def reading(self, lag: int, at_hand: int) -> None:
        for each in self._both:
            each.reading(lag, at_hand)

    def failure(self, error: IcebergError) -> None:
        for each in self._both:
            each.failure(error)


@contextmanager
def _observed(printer: _Printer, host: str, port: int | None) -> Iterator[Observer]:
    """The printer; if there is a port, with metrics there."""
    if port is None:
        yield printer
        return
    from hms_iceberg.ingest.metrics import IngestMetrics
    from hms_iceberg.reporters.prometheus import count, metrics_server, prometheus

    registry = prometheus().CollectorRegistry()
    metrics = IngestMetrics(registry)
    probes = {"/health": lambda: None, "/ready": metrics.not_ready}
    with count(registry), metrics_server(host, port, registry, probes):
        yield _Both(metrics, printer)
