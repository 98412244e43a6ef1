"""Events become the rows of tables of every format, as SQLite replays them, and get a column in the middle."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from tests.support.change_streams import ChangeStream
from tests.support.kafka import Event, KafkaBroker

TABLES = ("a", "b")


def grown(event: Event) -> Event:
    """An event whose row has a column more."""
    try:
        found = json.loads(event[1] or b"")
    except ValueError:
        return event
    for row in (found["before"], found["after"]):
        if row is not None:
            row["more"] = [row["note"], str(row["n"])]
    return event[0], json.dumps(found).encode()


@pytest.mark.parametrize(
    ("form", "version", "mode"),
    [
        ("orc", 1, "copy-on-write"),
        ("orc", 2, "merge-on-read"),
        ("avro", 2, "copy-on-write"),
        ("avro", 3, "merge-on-read"),
    ],
)
def test_rows_are_those_of_a_replay_before_and_after_the_events_get_a_column(
    form: str, version: int, mode: str, catalog: Catalog, namespace: str, kafka: KafkaBroker
) -> None:
    topic, letters = kafka.create_topic(), f"{namespace}_dead.letters"
    catalog.create_namespace(f"{namespace}_dead")
    columns = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("note", pa.string())])
    properties = {"write.format.default": form, "format-version": str(version), "write.merge.mode": mode}
    tables = [catalog.create_table(f"{namespace}.{each}", columns, properties=properties) for each in TABLES]
    stream = ChangeStream.random(version, TABLES, partitions=1, events=160, keys=12)
    before, after = stream.partitions[0][:80], [grown(each) for each in stream.partitions[0][80:]]
    own = ["--uri", catalog.properties["uri"], "-p", f"warehouse={catalog.properties['warehouse']}", "--once"]
    words = ["--topic", topic, "--table", f"{namespace}.{{source.table}}", "--evolve", "--dead-letters", letters]
    for count, events in ((80, before), (160, after)):
        kafka.send(topic, events)
        assert main(["ingest", *own, "--brokers", kafka.address, *words, "--max-rows", "50"]) == 0
        expected, bad = stream.replayed({0: count})
        for name, table in zip(TABLES, tables, strict=True):
            found = table.refresh().scan().to_arrow().to_pylist()
            assert sorted((row["id"], row["n"], row["note"]) for row in found) == expected[name]
        assert catalog.load_table(letters).scan().count() == bad > 0
    late = [json.loads(value) for key, value in after if key != b"x" and value]
    for name, table in zip(TABLES, tables, strict=True):
        changed = {each["after"]["id"] for each in late if each["after"] and each["source"]["table"] == name}
        for row in table.scan().to_arrow().to_pylist():
            more = [row["note"], str(row["n"])] if row["id"] in changed else None
            assert row["more"] == more, row
        files = [each.file.file_path for each in table.scan().plan_files()]
        assert {each.rpartition(".")[2] for each in files} == {form}
