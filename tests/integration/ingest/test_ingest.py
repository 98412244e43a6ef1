"""Events of a real broker become rows of tables of a real metastore, exactly once."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.main import main
from hms_iceberg.ingest import source
from hms_iceberg.ingest.dead_letters import DEAD_LETTERS
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.schema import Schema
from tests.support.guides import block, lines_of
from tests.support.kafka import PASSWORD, USER, KafkaBroker, debezium, json_event
from tests.support.ports import free_port
from tests.support.schema_registry import avro_event, schema_registry
from tests.support.tls_front import Certificates

Ingest = Callable[..., int]


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    return kafka.create_topic()


@pytest.fixture
def ingest(catalog: Catalog, kafka: KafkaBroker, topic: str) -> Ingest:
    """Runs the command up to the end of the topic."""

    def run(*words: str) -> int:
        own = ["--uri", catalog.properties["uri"], "-p", f"warehouse={catalog.properties['warehouse']}"]
        return main(["ingest", *own, "--brokers", kafka.address, "--topic", topic, "--once", *words])

    return run


def rows(catalog: Catalog, table: str, *columns: str) -> list[tuple[Any, ...]]:
    found = catalog.load_table(table).scan().to_arrow().to_pylist()
    return sorted(tuple(row[name] for name in columns) if columns else tuple(row.values()) for row in found)


def offsets(catalog: Catalog, table: str, name: str) -> dict[str, int]:
    return catalog.load_table(table).applied_offsets(name)


def snapshots(catalog: Catalog, table: str) -> int:
    return len(catalog.load_table(table).snapshots())


# -------------------------------------------------------------------------------------------------- envelopes


def test_events_of_debezium_are_applied_and_a_second_run_reads_on(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    table = f"{namespace}.orders"
    first = [
        json_event(debezium("r", None, {"id": 1, "note": "a"}), {"id": 1}),
        json_event(debezium("c", None, {"id": 2, "note": "b"}), {"id": 2}),
        json_event(debezium("u", {"id": 1, "note": "a"}, {"id": 1, "note": "c"}), {"id": 1}),
    ]
    kafka.send(topic, first)
    assert ingest("--table", table, "--create") == 0
    assert rows(catalog, table) == [(1, "c"), (2, "b")]
    assert catalog.load_table(table).schema().identifier_field_names() == {"id"}

    kafka.send(topic, [json_event(debezium("d", {"id": 2}, None), {"id": 2}), json_event(None, {"id": 2})])
    assert ingest("--table", table) == 0
    assert rows(catalog, table) == [(1, "c")]
    assert offsets(catalog, table, topic) == {f"{topic}-0": 5}
    before = snapshots(catalog, table)
    assert ingest("--table", table) == 0
    assert snapshots(catalog, table) == before


def test_a_value_of_null_takes_the_place_of_the_value_that_was_there(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    table = f"{namespace}.orders"
    kafka.send(topic, [json_event(debezium("c", None, {"id": 1, "note": "a"}), {"id": 1})])
    assert ingest("--table", table, "--create") == 0
    kafka.send(topic, [json_event(debezium("u", None, {"id": 1, "note": None}), {"id": 1})])
    assert ingest("--table", table) == 0
    assert rows(catalog, table) == [(1, None)]


def test_a_truncate_takes_all_rows_between_the_events_around_it(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    table = f"{namespace}.orders"
    truncate = json_event(debezium("t", None, None))
    events = [json_event(debezium("c", None, {"id": each}), {"id": each}) for each in range(4)]
    kafka.send(topic, [events[0], events[1], truncate, events[2], truncate, truncate, events[3]])
    assert ingest("--table", table, "--create") == 0
    assert rows(catalog, table) == [(3,)]
    assert offsets(catalog, table, topic) == {f"{topic}-0": 7}


ORDER = {
    "type": "record",
    "name": "Value",
    "namespace": "shop.orders",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "day", "type": ["null", {"type": "int", "connect.name": "io.debezium.time.Date"}], "default": None},
        {
            "name": "price",
            "type": {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": 9,
                "scale": 2,
                "connect.name": "org.apache.kafka.connect.data.Decimal",
                "connect.parameters": {"scale": "2"},
            },
        },
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.orders",
    "fields": [
        {"name": "before", "type": ["null", ORDER], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
    ],
}
KEY = {"type": "record", "name": "Key", "namespace": "shop.orders", "fields": [{"name": "id", "type": "long"}]}


def test_debezium_s_avro_of_a_schema_registry_is_applied(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    table = f"{namespace}.orders"
    with schema_registry() as registry:
        key, value = registry.register("k", KEY), registry.register("v", ENVELOPE)

        def event(op: str, before: Any, after: Any) -> tuple[bytes, bytes]:
            row = {"before": before, "after": after, "op": op}
            return avro_event(key, KEY, {"id": 1}), avro_event(value, ENVELOPE, row)

        first = {"id": 1, "day": 20484, "price": Decimal("9.99")}
        kafka.send(topic, [event("c", None, first), event("u", first, {**first, "price": Decimal("-0.01")})])
        words = ("--table", table, "--format", "debezium-avro", "--schema-registry", registry.url)
        assert ingest(*words, "--create") == 0
        assert rows(catalog, table) == [(1, date(2026, 1, 31), Decimal("-0.01"))]
        kafka.send(topic, [event("d", first, None), (avro_event(key, KEY, {"id": 1}), None)])
        assert ingest(*words) == 0
        assert rows(catalog, table) == []


def test_plain_avro_whose_schema_refers_to_another_is_applied(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    money = {"type": "record", "name": "money", "fields": [{"name": "cents", "type": "int"}]}
    row = {
        "type": "record",
        "name": "row",
        "fields": [{"name": "id", "type": "int"}, {"name": "paid", "type": "money"}],
    }
    table = f"{namespace}.orders"
    with schema_registry() as registry:
        registry.register("money", money)
        number = registry.register("row", row, [{"name": "money", "subject": "money", "version": 1}])
        named: dict[str, Any] = {}
        avro_event(0, money, {"cents": 1}, named)
        import fastavro

        fastavro.parse_schema(money, named)
        kafka.send(topic, [(None, avro_event(number, row, {"id": 1, "paid": {"cents": 5}}, named))])
        words = ("--table", table, "--format", "avro", "--schema-registry", registry.url)
        assert ingest(*words, "--create", "--key", "id") == 0
        assert rows(catalog, table) == [(1, {"cents": 5})]

        kafka.send(topic, [(None, b"\x00\x00\x00\x00\x63x")])  # of a schema that nobody has registered
        assert ingest(*words, "--dead-letters", f"{namespace}.dead") == 0
        assert "has no schema 99" in rows(catalog, f"{namespace}.dead", "error")[0][0]


def test_plain_json_upserts_deletes_by_its_operation_column_and_appends_where_there_is_no_key(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    events = [{"id": 1, "op": "insert"}, {"id": 2, "op": "I"}, {"id": 1, "op": "delete"}, {"id": 2, "op": "upsert"}]
    kafka.send(topic, [json_event(each) for each in events])
    keyed, log = f"{namespace}.keyed", f"{namespace}.log"
    words = ("--format", "json", "--create")
    assert ingest("--table", keyed, "--operation-column", "op", "--key", "id", *words) == 0
    assert rows(catalog, keyed) == [(2,)]
    assert ingest("--table", log, *words) == 0
    assert ingest("--table", log, *words) == 0
    assert [row[0] for row in rows(catalog, log, "id")] == [1, 1, 2, 2]


# --------------------------------------------------------------------------------------------- several tables


def test_tables_of_one_topic_are_committed_together_with_dead_letters(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    good = [
        json_event(debezium("c", None, {"id": each}, table=table), {"id": each})
        for each in range(3)
        for table in ("Orders", "lines")
    ]
    bad = (b"k", b"{", [("trace", b"7"), ("none", None)])
    kafka.send(topic, good)
    kafka.send(topic, [bad[:2]], headers=bad[2])
    words = ("--table", f"{namespace}.{{source.table}}", "--create", "--dead-letters", f"{namespace}_dead.letters")
    catalog.create_namespace(f"{namespace}_dead")
    assert ingest(*words) == 0
    for table in ("orders", "lines"):
        assert rows(catalog, f"{namespace}.{table}") == [(0,), (1,), (2,)]
    [letter] = catalog.load_table(f"{namespace}_dead.letters").scan().to_arrow().to_pylist()
    assert (letter["topic"], letter["partition"], letter["offset"]) == (topic, 0, 6)
    assert (letter["key"], letter["value"]) == (b"k", b"{")
    assert letter["headers"] == [{"name": "trace", "value": b"7"}, {"name": "none", "value": None}]
    assert "no JSON" in letter["error"] and letter["timestamp"].year >= 2026
    tables = [f"{namespace}.orders", f"{namespace}.lines", f"{namespace}_dead.letters"]
    assert {str(offsets(catalog, each, topic)) for each in tables} == {str({f"{topic}-0": 7})}
    assert [snapshots(catalog, each) for each in tables] == [1, 1, 1]
    assert ingest(*words) == 0
    assert [snapshots(catalog, each) for each in tables] == [1, 1, 1]


def test_a_table_that_was_rolled_back_gets_its_events_again_and_the_others_do_not(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    def send(number: int) -> None:
        for table in ("a", "b"):
            kafka.send(topic, [json_event({"id": number, "t": table})])

    words = ("--table", f"{namespace}.{{t}}", "--format", "json", "--create")  # without a key: what is repeated is seen
    for number in (1, 2):
        send(number)
        assert ingest(*words) == 0
    back = catalog.load_table(f"{namespace}.a")
    back.manage_snapshots().rollback_to_snapshot(back.snapshots()[0].snapshot_id).commit()
    send(3)
    assert ingest(*words) == 0
    assert rows(catalog, f"{namespace}.a", "id") == rows(catalog, f"{namespace}.b", "id") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("keyed", [False, True])
def test_a_table_is_not_set_back_by_a_batch_that_another_table_needs_from_earlier_on(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, ingest: Ingest, keyed: bool
) -> None:
    topic, tables = kafka.create_topic(2), [f"{namespace}.ahead", f"{namespace}.behind"]
    words = ("--table", f"{namespace}.{{t}}", "--format", "json", "--create", "--max-rows", "2", "--topic", topic)
    words = (*words, "--name", "both", *(("--key", "id") if keyed else ()))
    words = (*words, "--kafka", "fetch.message.max.bytes=1")  # events of both partitions come in turns
    kafka.send(topic, [json_event({"id": 0, "t": "behind"})], 0)
    assert ingest(*words) == 0
    for number in range(1, 9):
        kafka.send(topic, [json_event({"id": number, "t": "ahead"})], 0)
    assert ingest(*words) == 0
    back = catalog.load_table(tables[1])
    back.manage_snapshots().rollback_to_snapshot(back.snapshots()[0].snapshot_id).commit()
    for number in range(10, 16):
        kafka.send(topic, [json_event({"id": number, "t": ("ahead", "behind")[number % 2]})], 1)
    assert ingest(*words) == 0
    assert rows(catalog, tables[0], "id") == [(each,) for each in (*range(1, 9), 10, 12, 14)]
    assert rows(catalog, tables[1], "id") == [(each,) for each in (0, 11, 13, 15)]


def test_a_table_without_events_keeps_up_with_the_offsets(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    words = ("--table", f"{namespace}.{{t}}", "--format", "json", "--create")
    kafka.send(topic, [json_event({"t": "quiet"}), json_event({"t": "busy"})])
    assert ingest(*words) == 0
    kafka.send(topic, [json_event({"t": "busy"})])
    assert ingest(*words) == 0
    assert offsets(catalog, f"{namespace}.quiet", topic) == {f"{topic}-0": 3}
    kafka.delete_events(topic, 0, 3)  # retention takes what nobody needs
    kafka.send(topic, [json_event({"t": "quiet"})])
    assert ingest(*words) == 0
    assert len(rows(catalog, f"{namespace}.quiet")) == 2


# ------------------------------------------------------------------------------------------------- bad events

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.date32()), ("n", pa.int32())])
GOOD = debezium("c", None, {"id": 1, "day": "2026-01-31", "n": 1})
BAD: list[tuple[object, object, str]] = [
    (debezium("x", None, {"id": 2}), {"id": 2}, "operation 'x' is unknown"),
    (debezium("u", None, {"day": None}), None, "key column 'id' is missing"),
    (debezium("c", None, {"id": 2, "n": 2**31}), {"id": 2}, "column 'n' does not fit"),
    (debezium("c", None, {"id": 2, "day": "yesterday"}), {"id": 2}, "column 'day' does not fit"),
    (debezium("c", None, {"id": 2, "more": 1}), {"id": 2}, "no column 'more'"),
    (debezium("d", {"id": "x"}, None), {"id": "x"}, "column 'id' does not fit"),
    ("text", None, "no event of Debezium"),
]


def test_a_bad_event_stops_before_anything_is_written_and_is_named(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, ingest: Ingest, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    table = f"{namespace}.orders"
    made = catalog.create_table(table, SCHEMA)
    with made.update_schema() as update:
        update.set_identifier_fields("id")
    kafka.send(topic, [json_event(GOOD)])
    for offset, (value, key, why) in enumerate(BAD, 1):
        kafka.send(topic, [json_event(value, key)])
        capfd.readouterr()
        if offset == 1:
            assert ingest("--table", table) == 1
            said = capfd.readouterr().err
            assert f"topic {topic}, partition 0, offset 1" in said and why in said
            assert snapshots(catalog, table) == 0
    assert ingest("--table", table, "--dead-letters", f"{namespace}.dead") == 0
    assert rows(catalog, table, "id") == [(1,)]
    letters = rows(catalog, f"{namespace}.dead", "offset", "error", "value")
    assert [letter[0] for letter in letters] == list(range(1, len(BAD) + 1))
    for (_, error, raw), (value, _, why) in zip(letters, BAD, strict=True):
        assert why in error and json.loads(raw) == value


def test_a_table_that_does_not_exist_is_named(
    namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest, capfd: pytest.CaptureFixture[str]
) -> None:
    kafka.send(topic, [json_event(debezium("c", None, {"id": 1}), {"id": 1})])
    assert ingest("--table", f"{namespace}.orders") == 1
    assert "--create" in capfd.readouterr().err
    assert ingest("--table", f"{namespace}.{{source.table}}") == 1
    assert "offset 0" in capfd.readouterr().err


def test_events_that_the_broker_has_deleted_are_told_and_passed_by_only_where_that_is_accepted(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, ingest: Ingest, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--table", f"{namespace}.log", "--format", "json", "--create")
    for first in (0, 3):
        kafka.send(topic, [json_event({"n": each}) for each in range(first, first + 3)])
        if not first:
            assert ingest(*words) == 0
    kafka.delete_events(topic, 0, 5)
    assert ingest(*words) == 1
    said = capfd.readouterr().err
    assert f"needs offset 3 of topic {topic}, partition 0" in said and "2 offsets are lost" in said
    assert ingest(*words, "--accept-gap") == 0
    assert rows(catalog, f"{namespace}.log") == [(0,), (1,), (2,), (5,)]


def test_a_topic_that_was_made_anew_is_told(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, ingest: Ingest, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--table", f"{namespace}.log", "--format", "json", "--create", "--accept-gap")
    kafka.send(topic, [json_event({"n": 1})] * 3)
    assert ingest(*words) == 0
    for count in (1, 5):
        kafka.delete_topic(topic)
        kafka.create_topic(name=topic)
        kafka.send(topic, [json_event({"n": 2})] * count)
        assert ingest(*words) == 1
        assert "deleted and made anew" in capfd.readouterr().err
    assert ingest(*words, "--name", "anew") == 0
    assert rows(catalog, f"{namespace}.log") == [(1,)] * 3 + [(2,)] * 5


def test_a_broker_of_tls_and_passwords_is_read_and_what_is_wrong_with_either_is_told(
    catalog: Catalog,
    namespace: str,
    kafka: KafkaBroker,
    ingest: Ingest,
    topic: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka.send(topic, [json_event({"n": 1})])
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(kafka.authority),
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }

    def words(**more: str) -> tuple[str, ...]:
        file = tmp_path / "client.properties"
        given = {**settings, **{name.replace("_", "."): value for name, value in more.items()}}
        file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        own = ("--brokers", kafka.secure_address, "--kafka-file", str(file))
        return ("--table", f"{namespace}.log", "--format", "json", "--create", *own)

    assert ingest(*words()) == 0
    assert rows(catalog, f"{namespace}.log") == [(1,)]
    monkeypatch.setattr(source, "_ASK_SECONDS", 3.0)
    others = tmp_path / "others"
    others.mkdir()
    for wrong, said in (
        ({"sasl_password": "another"}, "Authentication failed"),
        ({"ssl_ca_location": str(Certificates(others).ca)}, "certificate verify failed"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "Unsupported SASL mechanism"),
        ({"security_protocol": "SSL"}, "security.protocol right"),
    ):
        assert ingest(*words(**wrong)) == 1
        err = capfd.readouterr().err
        assert said in err and PASSWORD not in err, wrong


def test_dead_letters_are_refused_by_a_table_of_other_columns_before_anything_is_read(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, ingest: Ingest, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    kafka.send(topic, [json_event({"n": 1}), (None, b"{")])
    for number, (schema, said) in enumerate(
        (
            (DEAD_LETTERS.select("topic", "partition", "offset"), "'error'"),
            (Schema(*DEAD_LETTERS.fields, NestedField(99, "why", StringType(), required=True)), "'why'"),
            (Schema(*DEAD_LETTERS.fields[:-1], NestedField(8, "error", LongType())), "'error'"),
        )
    ):
        letters = f"{namespace}.dead{number}"
        catalog.create_table(letters, schema)
        words = ("--table", f"{namespace}.log", "--format", "json", "--create", "--dead-letters", letters)
        assert ingest(*words) == 1
        err = capfd.readouterr().err
        assert letters in err and said in err
        assert not catalog.table_exists(f"{namespace}.log") and not snapshots(catalog, letters)


def test_a_tombstone_deletes_the_row_of_its_key_where_compaction_left_nothing_else(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, ingest: Ingest, topic: str
) -> None:
    table = f"{namespace}.orders"
    kafka.send(topic, [json_event(debezium("r", None, {"id": each}), {"id": each}) for each in (1, 2, 3)])
    assert ingest("--table", table, "--create") == 0
    kafka.send(topic, [json_event(None, {"id": 2}), json_event(None, {"no": 1}), json_event(None)])
    assert ingest("--table", table) == 0
    assert rows(catalog, table) == [(1,), (3,)]
    assert ingest("--table", f"{namespace}.{{source.table}}_two", "--create", "--name", "two") == 0
    assert rows(catalog, f"{table}_two") == [(1,), (2,), (3,)]


def test_a_topic_that_does_not_exist_and_a_broker_that_does_not_answer_are_told(
    namespace: str, ingest: Ingest, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_ASK_SECONDS", 1.0)
    words = ("--table", f"{namespace}.t", "--create")
    assert ingest("--topic", "no-such-topic", "--name", "x", *words) == 1
    assert "no-such-topic" in capfd.readouterr().err
    assert ingest("--brokers", f"127.0.0.1:{free_port()}", *words) == 1
    assert "Kafka does not answer" in capfd.readouterr().err


def test_a_registry_that_does_not_answer_makes_no_dead_letters(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest, capfd: pytest.CaptureFixture[str]
) -> None:
    kafka.send(topic, [(None, b"\x00\x00\x00\x00\x01x")])
    words = ("--table", f"{namespace}.t", "--create", "--format", "avro", "--dead-letters", f"{namespace}.dead")
    url = f"http://127.0.0.1:{free_port()}"
    assert ingest(*words, "--schema-registry", url, "--kafka", "schema.registry.max.retries=0") == 1
    assert "The schema registry did not give schema 1" in capfd.readouterr().err
    assert rows(catalog, f"{namespace}.dead") == []


# ------------------------------------------------------------------------------------------- what comes and goes


def test_columns_are_added_and_widened_as_events_need_them(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    table = f"{namespace}.orders"
    words = ("--table", table, "--format", "json", "--key", "id", "--evolve")
    catalog.create_table(table, pa.schema([("id", pa.int64()), ("n", pa.int32())]))
    events = [
        {"id": 1, "n": 1},
        {"id": 2, "n": 2**40, "at": {"x": 1}},
        {"id": 3, "at": {"x": None, "y": [1, 2]}, "word": "w"},
        {"id": 4, "n": "no number"},
    ]
    kafka.send(topic, [json_event(each) for each in events])
    assert ingest(*words, "--dead-letters", f"{namespace}.dead") == 0
    found = catalog.load_table(table).scan().to_arrow().sort_by("id").to_pylist()
    assert found == [
        {"id": 1, "n": 1, "at": None, "word": None},
        {"id": 2, "n": 2**40, "at": {"x": 1, "y": None}, "word": None},
        {"id": 3, "n": None, "at": {"x": None, "y": [1, 2]}, "word": "w"},
    ]
    assert rows(catalog, f"{namespace}.dead", "offset") == [(3,)]


def test_a_partition_that_was_added_is_read_from_its_first_event(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    words = ("--table", f"{namespace}.log", "--format", "json", "--create", "--from", "latest")
    kafka.send(topic, [json_event({"n": 0})])
    assert ingest(*words) == 0  # begins behind what is there
    assert not catalog.table_exists(f"{namespace}.log")
    assert ingest(*words[:-1], "earliest") == 0
    kafka.add_partitions(topic, 2)
    kafka.send(topic, [json_event({"n": 1})], partition=1)
    assert ingest(*words) == 0
    assert rows(catalog, f"{namespace}.log") == [(0,), (1,)]
    assert offsets(catalog, f"{namespace}.log", topic) == {f"{topic}-0": 1, f"{topic}-1": 1}


def test_events_of_transactions_that_were_given_up_are_none(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    for number, is_aborted in enumerate((False, True, False, True)):
        settings = {"transactional.id": f"t-{topic}"}
        kafka.send(topic, [json_event({"n": number})] * 2, settings=settings, is_aborted=is_aborted)
    words = ("--table", f"{namespace}.log", "--format", "json", "--create")
    assert ingest(*words) == 0
    assert rows(catalog, f"{namespace}.log") == [(0,), (0,), (2,), (2,)]
    assert offsets(catalog, f"{namespace}.log", topic) == {f"{topic}-0": 12}  # behind the markers of transactions


def test_a_batch_is_bounded_by_rows_and_by_bytes(
    catalog: Catalog, namespace: str, kafka: KafkaBroker, topic: str, ingest: Ingest
) -> None:
    kafka.send(topic, [json_event({"text": "x" * 1000})] * 10)
    words = ("--format", "json", "--create")
    assert ingest("--table", f"{namespace}.by_rows", *words, "--max-rows", "4") == 0
    assert ingest("--table", f"{namespace}.by_bytes", *words, "--max-bytes", "3000") == 0
    for table, sizes in (("by_rows", [4, 4, 2]), ("by_bytes", [3, 3, 3, 1])):
        found = catalog.load_table(f"{namespace}.{table}").snapshots()
        assert [int(each.summary["added-records"]) for each in found if each.summary] == sizes


def test_the_guide_s_command_and_its_python_run_as_they_stand(
    catalog: Catalog, kafka: KafkaBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = catalog.properties["uri"]
    catalog.create_namespace("shop")
    kafka.create_topic(name="shop.orders")
    kafka.send("shop.orders", [json_event(debezium("c", None, {"id": 1}), {"id": 1})])
    [words] = lines_of("ingest", "Change streams from Kafka")
    here = [word.replace("kafka:9092", kafka.address) for word in words[1:]]
    assert main([*here, "--uri", uri, "--once"]) == 0
    capsys.readouterr()
    code = block("ingest", "Exactly once", "python").code.replace("thrift://metastore:9083", uri)
    exec(compile(code, "guide", "exec"), {})
    assert capsys.readouterr().out == "{'shop.orders-0': 1}\n"
    catalog.drop_table("shop.orders", purge_requested=True)
    catalog.drop_namespace("shop")


def test_wrong_words_are_told_before_anything_is_read(
    namespace: str, ingest: Ingest, capfd: pytest.CaptureFixture[str]
) -> None:
    table = ("--table", f"{namespace}.t")
    for words, said in (
        ((*table, "--topic", "second"), "--name"),
        ((*table, "--format", "avro"), "schema registry"),
        ((*table, "--operation-column", "op"), "plain values"),
        ((*table, "--every", "0s"), "--every"),
        ((*table, "--kafka", "no.such.setting=1"), "no.such.setting"),
        ((*table, "--kafka", "auto.offset.reset=latest"), "auto.offset.reset"),
        ((*table, "--dead-letters", f"{namespace}.T"), "Dead letters cannot"),
        (("--table", "{"), "Table '{'"),
    ):
        assert ingest(*words) in (1, 2)
        assert said in capfd.readouterr().err, words
