"""What events say, by their envelope."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.ingest.envelopes.decoding import AvroDecoder, JsonDecoder
from hms_iceberg.ingest.envelopes.envelopes import Debezium, Plain, envelope_of
from hms_iceberg.ingest.records import EventProblem, Operation, Record
from hms_iceberg.ingest.routing import TableTemplate
from hms_iceberg.spec.data_types import DateType, LongType

ROW = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int64"},
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date", "optional": True},
    ],
}
ENVELOPE = {
    "type": "struct",
    "fields": [{**ROW, "field": "before"}, {**ROW, "field": "after"}, {"field": "op", "type": "string"}],
}


def record(value: object = None, key: object = None) -> Record:
    def as_bytes(part: object) -> bytes | None:
        return part if part is None or isinstance(part, bytes) else json.dumps(part).encode()

    return Record("shop.orders", 0, 7, as_bytes(key), as_bytes(value))


DEBEZIUM, PLAIN = Debezium(JsonDecoder()), Plain(JsonDecoder())


@pytest.mark.parametrize(
    ("op", "operation"),
    [
        ("c", Operation.INSERT),
        ("r", Operation.INSERT),
        ("u", Operation.UPSERT),
        ("d", Operation.DELETE),
        ("t", Operation.TRUNCATE),
    ],
)
def test_debezium_s_operations_are_known(op: str, operation: Operation) -> None:
    before, after = {"id": 1, "day": 2}, {"id": 3, "day": 4}
    change = DEBEZIUM(record({"op": op, "before": before, "after": after}))
    assert change is not None and change.operation is operation
    assert dict(change.row.values) == {"d": before, "t": {}}.get(op, after)
    assert change.row.types is None


def test_a_schema_beside_the_payload_tells_the_types() -> None:
    payload = {"op": "c", "before": None, "after": {"id": 1, "day": 2}}
    key = {"schema": {"type": "struct", "fields": [{"field": "id", "type": "int64"}]}, "payload": {"id": 1}}
    change = DEBEZIUM(record({"schema": ENVELOPE, "payload": payload}, key))
    assert change is not None and change.row.types is not None and change.key.types is not None
    assert {name: kind.column for name, kind in change.row.types.items()} == {"id": LongType(), "day": DateType()}
    assert change.key.values == {"id": 1} and change.key.types["id"].column == LongType()


def test_the_same_schema_has_the_same_types_in_every_event() -> None:
    event = record({"schema": ENVELOPE, "payload": {"op": "c", "after": {"id": 1}}})
    first, second = DEBEZIUM(event), DEBEZIUM(event)
    assert first is not None and second is not None and first.row.types is second.row.types


def test_columns_with_the_names_of_the_wrapper_are_columns() -> None:
    row = {"schema": "public", "payload": 5}
    change = PLAIN(record(row))
    assert change is not None and change.row.values == row


def test_a_tombstone_deletes_the_row_of_its_key_and_without_one_debezium_s_is_nothing() -> None:
    tombstone = record(None, {"id": 1})
    gone = DEBEZIUM(tombstone)
    assert gone is not None and (gone.operation, gone.key.values) == (Operation.TOMBSTONE, {"id": 1})
    assert DEBEZIUM(record(None, None)) is None
    change = PLAIN(tombstone)
    assert change is not None and change.operation is Operation.DELETE and change.row.values == {"id": 1}


def test_a_delete_without_its_row_is_one_of_its_key() -> None:
    change = DEBEZIUM(record({"op": "d", "before": None, "after": None}, {"id": 1}))
    assert change is not None and change.row.values == {"id": 1}


def test_an_operation_column_is_no_column_of_the_row() -> None:
    envelope = Plain(JsonDecoder(), "__op")
    for said, operation in (("D", Operation.DELETE), ("update", Operation.UPSERT), ("r", Operation.INSERT)):
        change = envelope(record({"id": 1, "__op": said}))
        assert change is not None and (change.operation, change.row.values) == (operation, {"id": 1})


def test_json_keeps_every_digit() -> None:
    change = PLAIN(record(b'{"a": 0.1000000000000000000000001, "b": 123456789012345678901234567890}'))
    assert change is not None
    assert change.row.values == {"a": Decimal("0.1000000000000000000000001"), "b": 123456789012345678901234567890}


def test_json_of_a_schema_registry_is_read_behind_its_number() -> None:
    change = PLAIN(record(b'\x00\x00\x00\x00\x07{"id": 1}'))
    assert change is not None and change.row.values == {"id": 1}


BAD: list[tuple[object, object, str]] = [
    (b"\xff\xfe", None, "no JSON"),
    (b"{", None, "no JSON"),
    ({"op": "x"}, None, "operation 'x' is unknown"),
    ({"op": "m"}, None, "operation 'm' is unknown"),
    ({"id": 1}, None, "no event of Debezium"),
    ([1], None, "no event of Debezium"),
    ({"op": "c", "after": None}, None, "'after' is no row"),
    ({"op": "d", "before": None}, None, "'before' is no row"),
    ({"op": "u", "after": {"id": 1, "big": "__debezium_unavailable_value"}}, None, "replica identity full"),
    ({"schema": {"type": "nothing"}, "payload": {}}, None, "not one of Kafka Connect's"),
]


@pytest.mark.parametrize(("value", "key", "why"), BAD)
def test_what_is_no_event_of_debezium_is_refused(value: object, key: object, why: str) -> None:
    with pytest.raises(EventProblem, match=why):
        DEBEZIUM(record(value, key))


@pytest.mark.parametrize(
    ("envelope", "value", "why"),
    [
        (PLAIN, None, "its key has no fields"),
        (PLAIN, [1], "no row"),
        (PLAIN, b"null", "no row"),
        (Plain(JsonDecoder(), "op"), {"id": 1}, "operation None"),
        (Plain(JsonDecoder(), "op"), {"id": 1, "op": "destroy"}, "operation 'destroy'"),
    ],
)
def test_what_is_no_row_is_refused(envelope: Plain, value: object, why: str) -> None:
    with pytest.raises(EventProblem, match=why):
        envelope(record(value))


def test_settings_that_contradict_each_other_are_refused() -> None:
    for kind, registry, column in (("xml", {}, None), ("debezium-json", {}, "op"), ("avro", {}, None)):
        with pytest.raises(InvalidInputError):
            envelope_of(kind, registry, column)


# ------------------------------------------------------------------------------------------------------ Avro

MONEY = {"type": "record", "name": "money", "fields": [{"name": "cents", "type": "long"}]}
ORDER = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "price", "type": "money"},
        {"name": "who", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}


def framed(number: int, schema: Any, value: Any, named: Mapping[str, Any]) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema, dict(named)), value)
    return b"\x00" + number.to_bytes(4, "big") + stream.getvalue()


def money() -> dict[str, Any]:
    named: dict[str, Any] = {}
    fastavro.parse_schema(MONEY, named)
    return named


def schemas(number: int) -> tuple[str, Mapping[str, str]]:
    return json.dumps(ORDER), {"money": json.dumps(MONEY)}


def test_avro_is_read_by_a_schema_that_refers_to_others() -> None:
    data = framed(9, ORDER, {"id": 1, "day": 2, "price": {"cents": 3}, "who": "x"}, money())
    found = AvroDecoder(schemas)(data)
    assert found.value == {"id": 1, "day": 2, "price": {"cents": 3}, "who": "x"}
    assert found.kind.fields is not None and found.kind.fields["day"].column == DateType()


def test_avro_that_is_none_is_refused() -> None:
    data = framed(9, ORDER, {"id": 1, "day": 2, "price": {"cents": 3}, "who": "x"}, money())
    decode = AvroDecoder(schemas)
    for bad, why in (
        (b"", "does not begin"),
        (b"\x01" + data[1:], "does not begin"),
        (data[:-1], "not what its Avro schema says"),
        (data + b"\x00", "bytes are left"),
    ):
        with pytest.raises(EventProblem, match=why):
            decode(bad)
    with pytest.raises(EventProblem, match="no Avro schema"):
        AvroDecoder(lambda number: ('{"type": "strange"}', {}))(data)


# ---------------------------------------------------------------------------------------------------- routing


def routed(template: str, value: Mapping[str, Any]) -> tuple[str, ...]:
    change = DEBEZIUM(record({"op": "c", "after": {"id": 1}, **value}))
    assert change is not None
    return TableTemplate(template).table_of(record(), change)


def test_a_template_takes_fields_of_the_event() -> None:
    source = {"source": {"db": "Shop", "table": "Orders"}}
    assert routed("{source.db}.t_{source.table}", source) == ("shop", "t_orders")
    assert routed("db.{topic}", {}) == ("db", "shop_orders")
    assert TableTemplate("DB.Orders").fixed == ("db", "orders")
    assert TableTemplate("db.{source.table}").may_be("db", "x") and not TableTemplate("db.a_{x}").may_be("db", "b")


@pytest.mark.parametrize("source", [{}, {"source": {"table": None}}, {"source": {"table": "a.b"}}, {"source": "x"}])
def test_an_event_that_names_no_table_is_refused(source: dict[str, Any]) -> None:
    with pytest.raises(EventProblem):
        routed("db.{source.table}", source)


@pytest.mark.parametrize("text", ["", "orders", "a.b.c", "db.{", "db.{}", "db.}", ".t"])
def test_a_template_that_names_no_table_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        TableTemplate(text)
