"""Which types of values in a data file may stand for a type of a table, in the eyes of every reader of Iceberg.

A table takes files of other writers in where they are. Readers then trust the table's schema: what Apache Iceberg in
Java reads of another scale or unit is another value (1.5 is 0.15, a year 1970 is 51972), and some types it cannot read
at all. So a file's type has to be what the table's has in the format, or what the specification lets grow into it.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" and "Schema Evolution"; each pair was read by
Apache Iceberg 1.12 on Spark.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import is_bytes, is_text
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    NANO_TIMESTAMPS,
    ZONED_TIMESTAMPS,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimeType,
    UnknownType,
    UUIDType,
)

_UUID_BYTES = 16


def byte_width(kind: IcebergType) -> int | None:
    """The length of every value of a type, if it is bytes of one length."""
    return kind.length if isinstance(kind, FixedType) else _UUID_BYTES if isinstance(kind, UUIDType) else None


def stands_for(
    kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool = False, uuid: bool | None = None
) -> bool:
    """Whether a file's values can be read as a table's type by every reader, and mean the same to all.

    Args:
        kind: the file's type as Arrow reads it; no nested one.
        wanted: the table's type.
        file_format: PARQUET, ORC or AVRO, in any case.
        int96: whether Parquet holds the column as INT96, whose unit all readers know.
        uuid: whether bytes of fixed length are marked as UUIDs, by which alone Java tells them in Avro; None if no mark
            is needed.
    """
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if uuid is not None and pa.types.is_fixed_size_binary(kind) and uuid != isinstance(wanted, UUIDType):
        return False
    test = _TESTS.get(type(wanted))
    return bool(test is not None and test(kind, wanted, file_format.upper(), int96))


_Test = Callable[[pa.DataType, IcebergType, str, bool], bool]


def _is(*types: pa.DataType) -> _Test:
    return lambda kind, _wanted, _format, _int96: kind in types


def _decimal(kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool) -> bool:
    assert isinstance(wanted, DecimalType)
    return bool(pa.types.is_decimal(kind) and kind.scale == wanted.scale and kind.precision <= wanted.precision)


def _long(kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool) -> bool:
    small = _SMALL if file_format == "PARQUET" else (pa.int32(),)  # Java promotes nothing smaller in ORC
    return kind in (*small, pa.int64())


def _time(kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool) -> bool:
    return bool(kind == pa.time64("us") or (file_format == "ORC" and kind == pa.int64()))


def _micros(kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool) -> bool:
    if not pa.types.is_timestamp(kind):
        return False
    if file_format == "ORC":  # which has one unit, and two types that Java does not take for each other
        return bool(kind.unit == "ns" and _same_zone(kind, wanted))
    return bool(int96 or kind.unit == "us" or (file_format == "AVRO" and kind.unit == "ms"))


def _same_zone(kind: pa.DataType, wanted: IcebergType) -> bool:
    return (kind.tz is not None) == isinstance(wanted, ZONED_TIMESTAMPS)


def _nanos(kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool) -> bool:
    if not pa.types.is_timestamp(kind) or kind.unit != "ns" or int96:
        return False
    return file_format != "ORC" or _same_zone(kind, wanted)


def _fixed(kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool) -> bool:
    if file_format == "ORC":
        return is_bytes(kind)  # its form of them; only the values tell their length
    return bool(pa.types.is_fixed_size_binary(kind) and kind.byte_width == byte_width(wanted))


def _bytes(kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool) -> bool:
    return is_bytes(kind) or (file_format != "ORC" and bool(pa.types.is_fixed_size_binary(kind)))


def _text(kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool) -> bool:
    return is_text(kind)


_SMALL = (pa.int8(), pa.int16(), pa.int32())
_TESTS: dict[type[IcebergType], _Test] = {
    BooleanType: _is(pa.bool_()),
    IntegerType: _is(*_SMALL),
    LongType: _long,
    FloatType: _is(pa.float32()),
    DoubleType: _is(pa.float32(), pa.float64()),
    DecimalType: _decimal,
    DateType: _is(pa.date32(), pa.date64()),
    TimeType: _time,
    StringType: _text,
    BinaryType: _bytes,
    GeometryType: _bytes,
    GeographyType: _bytes,
    FixedType: _fixed,
    UUIDType: _fixed,
    UnknownType: _is(pa.null()),
    **dict.fromkeys(MICRO_TIMESTAMPS, _micros),
    **dict.fromkeys(NANO_TIMESTAMPS, _nanos),
}
