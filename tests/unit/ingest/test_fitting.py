"""Values of events become values of columns, and what would lose something is refused."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from hms_iceberg.ingest.table_rows import arrow_type
from hms_iceberg.ingest.values.avro_types import avro_type
from hms_iceberg.ingest.values.connect_types import connect_type
from hms_iceberg.ingest.values.fitting import fit
from hms_iceberg.ingest.values.source_types import MILLI, UNTYPED
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

NOON = datetime(2026, 1, 31, 12, 0, 0, 123456)
NOON_MS, NOON_US = 1_769_860_800_123, 1_769_860_800_123_456
PI = base64.b64encode((31416).to_bytes(2, "big")).decode()
MINUS = base64.b64encode((-1).to_bytes(1, "big", signed=True)).decode()
SOME_ID = UUID("12345678-1234-5678-1234-567812345678")


def named(kind: str, name: str, **parameters: str) -> dict[str, Any]:
    return {"type": kind, "name": name, "parameters": parameters}


DEBEZIUM, CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
# A schema of Connect, a value in JSON, the column that is made for it, and its value there.
CONNECT_VALUES: list[tuple[dict[str, Any], Any, IcebergType, Any]] = [
    ({"type": "int16"}, -7, IntegerType(), -7),
    ({"type": "int64"}, 2**62, LongType(), 2**62),
    ({"type": "float"}, Decimal("1.5"), FloatType(), 1.5),
    ({"type": "double"}, Decimal("0.1"), DoubleType(), 0.1),
    ({"type": "boolean"}, True, BooleanType(), True),
    ({"type": "string"}, "ä", StringType(), "ä"),
    ({"type": "bytes"}, "AAEC", BinaryType(), b"\x00\x01\x02"),
    (named("bytes", "io.debezium.data.Bits", length="10"), "AwE=", BinaryType(), b"\x03\x01"),
    (named("int32", f"{DEBEZIUM}Date"), 20484, DateType(), date(2026, 1, 31)),
    (named("int32", f"{DEBEZIUM}Date"), -1, DateType(), date(1969, 12, 31)),
    (named("int32", f"{DEBEZIUM}Time"), 43_200_001, TimeType(), time(12, 0, 0, 1000)),
    (named("int64", f"{DEBEZIUM}MicroTime"), 43_200_000_001, TimeType(), time(12, 0, 0, 1)),
    (named("int64", f"{DEBEZIUM}NanoTime"), 43_200_000_001_000, TimeType(), time(12, 0, 0, 1)),
    (named("int64", f"{DEBEZIUM}Timestamp"), NOON_MS, TimestampType(), NOON.replace(microsecond=123000)),
    (named("int64", f"{DEBEZIUM}MicroTimestamp"), NOON_US, TimestampType(), NOON),
    (named("int64", f"{DEBEZIUM}NanoTimestamp"), NOON_US * 1000, TimestampType(), NOON),
    (named("int64", f"{DEBEZIUM}MicroTimestamp"), -1, TimestampType(), datetime(1969, 12, 31, 23, 59, 59, 999999)),
    (
        named("string", f"{DEBEZIUM}ZonedTimestamp"),
        "2026-01-31T13:00:00.123456+01:00",
        TimestamptzType(),
        NOON.replace(tzinfo=timezone.utc),
    ),
    (named("string", f"{DEBEZIUM}ZonedTime"), "12:00:00Z", StringType(), "12:00:00Z"),
    (named("string", f"{DEBEZIUM}IsoDate"), "2026-01-31", DateType(), date(2026, 1, 31)),
    (named("string", f"{DEBEZIUM}Interval"), "P1Y", StringType(), "P1Y"),
    (named("int64", f"{DEBEZIUM}MicroDuration"), 5, LongType(), 5),
    (named("int32", f"{DEBEZIUM}Year"), 2026, IntegerType(), 2026),
    (named("string", "io.debezium.data.Uuid"), str(SOME_ID), UUIDType(), SOME_ID),
    (named("string", "io.debezium.data.Json"), '{"a": 1}', StringType(), '{"a": 1}'),
    (named("string", "io.debezium.data.Enum", allowed="a,b"), "b", StringType(), "b"),
    (
        named("struct", "io.debezium.data.VariableScaleDecimal"),
        {"scale": 4, "value": PI},
        StringType(),
        "3.1416",
    ),
    (named("int32", f"{CONNECT}Date"), 20484, DateType(), date(2026, 1, 31)),
    (named("int32", f"{CONNECT}Time"), 43_200_000, TimeType(), time(12)),
    (
        named("int64", f"{CONNECT}Timestamp"),
        NOON_MS,
        TimestamptzType(),
        NOON.replace(microsecond=123000, tzinfo=timezone.utc),
    ),
    (
        named("bytes", f"{CONNECT}Decimal", **{"scale": "4", "connect.decimal.precision": "9"}),
        PI,
        DecimalType(9, 4),
        Decimal("3.1416"),
    ),
    (named("bytes", f"{CONNECT}Decimal", scale="2"), MINUS, DecimalType(38, 2), Decimal("-0.01")),
    (
        named("bytes", f"{CONNECT}Decimal", **{"scale": "2", "connect.decimal.precision": "60"}),
        PI,
        StringType(),
        "314.16",
    ),
    ({"type": "array", "items": {"type": "int32"}}, [1, None], ListType(1, IntegerType(), False), [1, None]),
    (
        {"type": "map", "keys": {"type": "string"}, "values": named("int32", f"{DEBEZIUM}Date")},
        {"a": 0},
        MapType(1, StringType(), 2, DateType(), False),
        [("a", date(1970, 1, 1))],
    ),
    (
        {"type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}},
        [[1, "x"]],
        MapType(1, IntegerType(), 2, StringType(), False),
        [(1, "x")],
    ),
    (
        {
            "type": "struct",
            "fields": [{"field": "x", "type": "double"}, {"field": "y", "type": "bytes", "optional": True}],
        },
        {"x": 1, "y": None},
        StructType(NestedField(1, "x", DoubleType(), True), NestedField(2, "y", BinaryType())),
        {"x": 1.0, "y": None},
    ),
]


def in_column(convert: Callable[[Any], Any], value: Any, kind: IcebergType) -> Any:
    return pa.array([convert(value)], arrow_type(kind)).to_pylist()[0]


@pytest.mark.parametrize(("schema", "value", "column", "expected"), CONNECT_VALUES)
def test_a_value_of_connect_is_what_its_schema_says(
    schema: dict[str, Any], value: Any, column: IcebergType, expected: Any
) -> None:
    source = connect_type(schema)
    assert source.column == column
    assert in_column(fit(column, source), value, column) == expected


LOGICAL: list[tuple[Any, Any, IcebergType, Any]] = [
    ({"type": "int", "logicalType": "date"}, 20484, DateType(), date(2026, 1, 31)),
    ({"type": "int", "logicalType": "time-millis"}, 43_200_000, TimeType(), time(12)),
    ({"type": "long", "logicalType": "time-micros"}, 43_200_000_001, TimeType(), time(12, 0, 0, 1)),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        NOON_US,
        TimestamptzType(),
        NOON.replace(tzinfo=timezone.utc),
    ),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, NOON_US, TimestampType(), NOON),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 4},
        (31416).to_bytes(2, "big"),
        DecimalType(9, 4),
        Decimal("3.1416"),
    ),
    ({"type": "string", "logicalType": "uuid"}, str(SOME_ID), UUIDType(), SOME_ID),
    ({"type": "long", "connect.name": f"{DEBEZIUM}MicroTimestamp"}, NOON_US, TimestampType(), NOON),
    (
        {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": 9,
            "scale": 4,
            "connect.name": f"{CONNECT}Decimal",
            "connect.parameters": {"scale": "4"},
        },
        (31416).to_bytes(2, "big"),
        DecimalType(9, 4),
        Decimal("3.1416"),
    ),
    (["null", "int"], 1, IntegerType(), 1),
    ({"type": "enum", "name": "e", "symbols": ["A"]}, "A", StringType(), "A"),
    ({"type": "fixed", "name": "f", "size": 2}, b"ab", FixedType(2), b"ab"),
    ({"type": "map", "values": "long"}, {"a": 1}, MapType(1, StringType(), 2, LongType(), False), [("a", 1)]),
]


@pytest.mark.parametrize(("schema", "value", "column", "expected"), LOGICAL)
def test_a_value_of_avro_is_what_its_schema_says(schema: Any, value: Any, column: IcebergType, expected: Any) -> None:
    source = avro_type(schema, {})
    assert source.column == column
    assert in_column(fit(column, source), value, column) == expected


def test_what_a_schema_cannot_say_of_one_column_is_told_by_its_values() -> None:
    tree = {"type": "record", "name": "t", "fields": [{"name": "below", "type": ["null", "t"]}]}
    for schema in (["null", "int", "string"], "null"):
        assert avro_type(schema, {}) is UNTYPED
    assert avro_type(tree, {"t": tree}).column is None


PLAIN: list[tuple[IcebergType, Any, Any]] = [
    (LongType(), Decimal("5.0"), 5),
    (DoubleType(), "NaN", None),
    (DateType(), "2026-01-31", date(2026, 1, 31)),
    (DateType(), 20484, date(2026, 1, 31)),
    (TimestampType(), "2026-01-31 12:00:00.123456", NOON),
    (TimestamptzType(), "2026-01-31T12:00:00.123456Z", NOON.replace(tzinfo=timezone.utc)),
    (TimestampType(), NOON_MS, NOON.replace(microsecond=123000)),
    (DecimalType(5, 2), Decimal("12.30"), Decimal("12.30")),
    (DecimalType(5, 2), "-1", Decimal("-1.00")),
    (DecimalType(38, 0), Decimal("1E+37"), Decimal(10) ** 37),
    (UUIDType(), str(SOME_ID), SOME_ID),
    (BinaryType(), "AAE=", b"\x00\x01"),
    (MapType(1, StringType(), 2, LongType(), False), {"a": 1}, [("a", 1)]),
]


@pytest.mark.parametrize(("column", "value", "expected"), PLAIN)
def test_a_value_without_a_schema_is_read_as_its_column_has_it(column: IcebergType, value: Any, expected: Any) -> None:
    found = in_column(fit(column, UNTYPED, time_unit=MILLI), value, column)
    assert found != found if expected is None else found == expected


REFUSED: list[tuple[IcebergType, dict[str, Any] | None, Any]] = [
    (IntegerType(), None, 2**31),
    (LongType(), None, 2**63),
    (LongType(), None, Decimal("1.5")),
    (LongType(), None, True),
    (LongType(), None, Decimal("1e999999999")),
    (DoubleType(), None, Decimal("1e999999999")),
    (DecimalType(9, 2), None, Decimal("1e999999999")),
    (DecimalType(9, 2), None, Decimal("1e-999999999")),
    (LongType(), None, "1"),
    (FloatType(), None, Decimal("1e39")),
    (DoubleType(), None, "x"),
    (BooleanType(), None, 1),
    (StringType(), None, 1),
    (StringType(), None, {"a": 1}),
    (BinaryType(), None, "no base64!"),
    (FixedType(3), None, "AAE="),
    (UUIDType(), None, "no uuid"),
    (DateType(), None, "2026-02-30"),
    (TimestampType(), None, NOON_MS),  # of which unit?
    (TimestampType(), None, "2026-01-31T12:00:00Z"),
    (TimestamptzType(), None, "2026-01-31T12:00:00"),
    (TimestampType(), None, "2026-01-31T12:00:00.123456789"),
    (TimestampType(), named("int64", f"{DEBEZIUM}NanoTimestamp"), NOON_US * 1000 + 1),
    (TimeType(), named("int32", f"{DEBEZIUM}Time"), 86_400_000),
    (StringType(), named("int32", f"{DEBEZIUM}Date"), 1),
    (DateType(), named("int64", f"{DEBEZIUM}Timestamp"), 1),
    (DecimalType(4, 2), None, Decimal("123")),
    (DecimalType(4, 2), None, Decimal("1.234")),
    (DecimalType(4, 2), None, PI),
    (DecimalType(4, 2), named("bytes", f"{CONNECT}Decimal", scale="4"), PI),
    (DecimalType(4, 2), None, "Infinity"),
    (LongType(), named("bytes", f"{CONNECT}Decimal", scale="0"), PI),
    (ListType(1, LongType(), True), None, [None]),
    (ListType(1, LongType(), False), None, {"a": 1}),
    (MapType(1, StringType(), 2, LongType(), True), None, {"a": None}),
    (StructType(NestedField(1, "x", LongType(), True)), None, {"x": None}),
    (StructType(NestedField(1, "x", LongType())), None, {"y": 1}),
    (StructType(NestedField(1, "x", LongType())), None, 5),
]


@pytest.mark.parametrize(("column", "schema", "value"), REFUSED)
def test_what_would_lose_something_is_refused(column: IcebergType, schema: dict[str, Any] | None, value: Any) -> None:
    convert = fit(column, UNTYPED if schema is None else connect_type(schema))
    with pytest.raises(ValueError, match=r"."):
        convert(value)


def test_nanoseconds_fit_a_column_of_nanoseconds() -> None:
    source = connect_type(named("int64", f"{DEBEZIUM}NanoTimestamp"))
    assert fit(TimestampNanoType(), source)(NOON_US * 1000 + 1) == NOON_US * 1000 + 1


@pytest.mark.parametrize("schema", [5, {"type": "strange"}, {"type": "array"}, {}])
def test_what_is_no_schema_of_connect_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match="Kafka Connect"):
        connect_type(schema)
