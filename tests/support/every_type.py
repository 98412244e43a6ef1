"""A schema with every type that Spark can hold, and rows of it in SQL: extreme values, NaN, nulls, empty containers."""

from __future__ import annotations

from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from hms_iceberg.spec.schema import Schema

EVERY_TYPE = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "b", BooleanType()),
    NestedField(3, "i", IntegerType()),
    NestedField(4, "f", FloatType()),
    NestedField(5, "d", DoubleType()),
    NestedField(6, "dec", DecimalType(38, 5)),
    NestedField(7, "day", DateType()),
    NestedField(8, "ts", TimestamptzType()),
    NestedField(9, "ntz", TimestampType()),
    NestedField(10, "s", StringType()),
    NestedField(11, "u", UUIDType()),
    NestedField(12, "fx", FixedType(3)),
    NestedField(13, "bin", BinaryType()),
    NestedField(14, "st", StructType(NestedField(15, "x", DoubleType()), NestedField(16, "u", UUIDType()))),
    NestedField(17, "l", ListType(18, StructType(NestedField(19, "y", FloatType())), False)),
    NestedField(20, "m", MapType(21, StringType(), 22, FixedType(2), False)),
    NestedField(23, "my col", StringType()),
)
ROWS = """
    (1, true, 2147483647, float('nan'), double('nan'), 123456789012345678901234567890123.12345,
     date'0001-01-01', timestamp'0002-01-01 00:00:00Z', timestamp_ntz'9999-12-31 23:59:59.999999', 'zürich',
     '123e4567-e89b-12d3-a456-426614174000', X'010203', X'00ff',
     named_struct('x', double('-infinity'), 'u', 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
     array(named_struct('y', float('nan')), null), map('k', X'0102', 'n', null), 'a'),
    (2, false, -2147483648, float('-0.0'), double('infinity'), -0.00001,
     date'9999-12-31', timestamp'2024-02-29 12:00:00.000001Z', timestamp_ntz'1582-10-10 00:00:00', '',
     null, null, X'', null, array(), map(), null),
    (null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)
"""
COLUMNS = ", ".join(f"`{field.name}`" for field in EVERY_TYPE.fields)
