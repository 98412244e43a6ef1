"""A million events of Kafka into a table, and small commits one after the other.

    python -m tests.benchmarks.ingest [--rows 1000000] [--events 1000000] [--format json|avro]

Prints processor seconds, apart for what reads, decodes and fits the events and for what commits them, and the time of
small commits. The broker is a real one on this machine; nothing is killed, and nothing else should run.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median

import pyarrow as pa
from click import echo

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import IcebergError
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.ingest.ingest import Ingest
from hms_iceberg.ingest.routing import TableTemplate
from hms_iceberg.ingest.settings import BatchReport, Settings
from hms_iceberg.ingest.table_rows import Rules
from tests.support.kafka import Event, KafkaBroker

_SMALL_COMMITS = 20


class Timing:
    """Adds up how long commits took."""

    def __init__(self) -> None:
        self.commits: list[float] = []

    def batch(self, report: BatchReport) -> None:
        self.commits.append(report.seconds)

    def reading(self, lag: int, at_hand: int) -> None: ...

    def failure(self, error: IcebergError) -> None:
        raise error


def changes(events: int, keys: int) -> Iterator[Event]:
    """Events of Debezium: nine updates and inserts to a delete."""
    draw = Random(1)
    for number in range(events):
        key = draw.randrange(keys)
        row = {"id": key, "city": f"city {key % 1000}", "price": key / 8, "day": "2026-01-31", "note": f"note {number}"}
        before, after, op = (row, None, "d") if number % 10 == 9 else (None, row, "u")
        value = {"before": before, "after": after, "op": op, "source": {"table": "t"}, "ts_ms": number}
        yield json.dumps({"id": key}).encode(), json.dumps(value).encode()


def filled(catalog: Catalog, name: str, rows: int) -> None:
    schema = [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("price", pa.float64()),
        ("day", pa.date32()),
        ("note", pa.string()),
    ]
    table = catalog.create_table(name, pa.schema(schema), properties={"format-version": "3"})
    step = 1_000_000
    for first in range(0, rows, step):
        ids = range(first, min(rows, first + step))
        columns = [list(ids), [f"city {each % 1000}" for each in ids], [each / 8 for each in ids]]
        columns += [[20484] * len(ids), ["note"] * len(ids)]
        table.append(pa.table([pa.array(c, t) for c, (_, t) in zip(columns, schema, strict=True)], pa.schema(schema)))


def measured(work: Settings, catalog: Catalog, profile: Path | None) -> None:
    timing, events = Timing(), work.max_rows
    began, wall = time.process_time(), time.monotonic()
    profiler = cProfile.Profile()
    if profile is not None:
        profiler.enable()
    Ingest(catalog, work, timing, threading.Event()).run(once=True)
    if profile is not None:
        profiler.disable()
        profiler.dump_stats(profile)
    used, took = time.process_time() - began, time.monotonic() - wall
    echo(f"batches of {events:,}: {used:.1f} processor seconds, {took:.1f} s, {sum(timing.commits):.1f} s in commits")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=250_000)
    parser.add_argument("--profile", type=Path)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, EmbeddedMetastore() as server:
        broker = KafkaBroker(Path(folder))
        broker.start()
        try:
            with load_catalog("here", uri=server.uri, warehouse=server.warehouse) as catalog:
                catalog.create_namespace("bench")
                filled(catalog, "bench.t", words.rows)
                topic = broker.create_topic()
                broker.send(topic, changes(words.events, words.rows), settings={"linger.ms": "50"})
                work = Settings(
                    (topic,),
                    TableTemplate("bench.t"),
                    "bench",
                    {"bootstrap.servers": broker.address},
                    rules=Rules(("id",)),
                    every_seconds=3600,
                    max_rows=words.batch,
                    max_bytes=1 << 40,
                )
                measured(work, catalog, words.profile)
                small(broker, catalog, topic, work)
        finally:
            broker.stop()


def small(broker: KafkaBroker, catalog: Catalog, topic: str, work: Settings) -> None:
    """Commits of ten events each."""
    broker.send(topic, changes(10 * _SMALL_COMMITS, 1000))
    timing = Timing()
    settings = Settings(**{**vars(work), "max_rows": 10})
    began = time.process_time()
    Ingest(catalog, settings, timing, threading.Event()).run(once=True)
    used = (time.process_time() - began) / _SMALL_COMMITS
    echo(f"commits of 10 events: {1000 * median(timing.commits):.0f} ms each, {1000 * used:.0f} ms of the processor")


if __name__ == "__main__":
    main()
