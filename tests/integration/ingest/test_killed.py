"""An ingest that is killed at any time, and two of one name at once: every event is applied once."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.ingest.routing import TableTemplate
from hms_iceberg.ingest.settings import Settings
from tests.support.change_streams import ChangeStream, Row
from tests.support.ingest_worker import ingesting
from tests.support.kafka import KafkaBroker, json_event

pytestmark = pytest.mark.slow

TABLES = ("a", "b")
KILLS = int(os.environ.get("HMS_ICEBERG_INGEST_KILLS", "6"))


def properties(catalog: Catalog) -> dict[str, str]:
    return {"type": "hive", "uri": catalog.properties["uri"], "warehouse": catalog.properties["warehouse"]}


def settings(kafka: KafkaBroker, topic: str, namespace: str, table: str, max_rows: int) -> Settings:
    return Settings(
        topics=(topic,),
        table=TableTemplate(f"{namespace}.{table}"),
        name="reader",
        kafka={"bootstrap.servers": kafka.address},
        create=True,
        every_seconds=0.2,
        max_rows=max_rows,
    )


def rows(catalog: Catalog, table: str) -> list[Row]:
    found = catalog.load_table(table).scan().to_arrow().select(["id", "n", "note"]).to_pylist()
    return sorted((row["id"], row["n"], row["note"]) for row in found)


def check(catalog: Catalog, namespace: str, topic: str, stream: ChangeStream, letters: str) -> int:
    """Whether the tables are what SQLite makes of the events that they have; returns how many these are.

    A batch without events of a table may leave its offsets behind the others'.
    """
    names = [(namespace, each) for each in TABLES]
    told = [table.applied_offsets("reader") for table in catalog.load_tables(names)]
    dead = catalog.load_table(letters) if catalog.table_exists(letters) else None
    told.append(dead.applied_offsets("reader") if dead else {})
    reached = [
        {number: applied.get(f"{topic}-{number}", 0) for number in range(len(stream.partitions))} for applied in told
    ]
    for each, offsets in zip(TABLES, reached, strict=False):
        assert rows(catalog, f"{namespace}.{each}") == stream.replayed(offsets)[0][each]
    assert (dead.scan().count() if dead else 0) == stream.replayed(reached[-1])[1]
    return sum(max(offsets[number] for offsets in reached) for number in range(len(stream.partitions)))


def test_an_ingest_that_is_killed_at_random_times_applies_every_event_once(
    catalog: Catalog, namespace: str, kafka: KafkaBroker
) -> None:
    events = 20 * KILLS
    stream = ChangeStream.random(7, TABLES, partitions=3, events=events, keys=20)
    topic, letters = kafka.create_topic(3), f"{namespace}_dead.letters"
    catalog.create_namespace(f"{namespace}_dead")
    for table in TABLES:
        catalog.create_table(
            f"{namespace}.{table}", pa.schema([("id", pa.int64()), ("n", pa.int64()), ("note", pa.string())])
        )
    for number, partition in enumerate(stream.partitions):
        kafka.send(topic, partition, number)
    work = settings(kafka, topic, namespace, "{source.table}", max_rows=10)
    work = replace(work, dead_letters=letters)
    draw, seen = Random(11), [0]
    for _ in range(KILLS):
        worker, commits = ingesting(properties(catalog), work), draw.randrange(3)
        took = [worker.commits.recv() for _ in range(commits)] or [1.0]
        time.sleep(draw.uniform(0, 1.5 * took[-1]))  # somewhere in what follows: reading, writing, or the next commit
        worker.killed()
        seen.append(check(catalog, namespace, topic, stream, letters))
        assert seen[-1] >= seen[-2] + commits
    last = ingesting(properties(catalog), replace(work, max_rows=100_000), once=True)
    assert last.ended() == 0
    assert check(catalog, namespace, topic, stream, letters) == 3 * events


def test_two_ingests_of_one_name_apply_every_event_once(catalog: Catalog, namespace: str, kafka: KafkaBroker) -> None:
    topic = kafka.create_topic(2)
    for partition in range(2):
        kafka.send(topic, [json_event({"n": 100 * partition + each}) for each in range(100)], partition)
    work = replace(settings(kafka, topic, namespace, "log", max_rows=20), format="json")
    both = [ingesting(properties(catalog), replace(work, max_rows=each), once=True) for each in (20, 33)]
    assert [each.ended() for each in both] == [0, 0]
    found = catalog.load_table(f"{namespace}.log").scan().to_arrow()["n"].to_pylist()
    assert sorted(found) == list(range(200))
