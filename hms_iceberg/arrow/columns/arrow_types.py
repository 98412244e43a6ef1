"""The Arrow type of each primitive type, and the Arrow types of data and of files that may stand for it.

A new type has its line in each of three tables: the Arrow type that it is read as, the types of users' data that fit
it without loss, and the types of data files that mean the same to every reader of Iceberg.

A table takes files of other writers in where they are. Readers then trust the table's schema: what Apache Iceberg in
Java reads of another scale or unit is another value (1.5 is 0.15, a year 1970 is 51972), and some types it cannot read
at all. So a file's type has to be what the table's has in the format, or what the specification lets grow into it.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" and "Schema Evolution"; each pair of types of
files was read by Apache Iceberg 1.12 on Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pyarrow as pa

from hms_iceberg.arrow.columns.geoarrow import shape_type
from hms_iceberg.spec.data_types import (
    LOCAL_TIMESTAMPS,
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
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from hms_iceberg.spec.values.decimals import decimal_value

_UUID_BYTES = 16

_PRIMITIVES: dict[type[IcebergType], pa.DataType] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", tz="UTC"),
    TimestampNanoType: pa.timestamp("ns"),
    TimestamptzNanoType: pa.timestamp("ns", tz="UTC"),
    StringType: pa.string(),
    UUIDType: pa.uuid(),
    BinaryType: pa.binary(),
    UnknownType: pa.null(),
    GeometryType: pa.binary(),
    GeographyType: pa.binary(),
}


def primitive_to_arrow(kind: IcebergType, extensions: bool = True) -> pa.DataType | None:
    """The Arrow type of a primitive type, None for others; `extensions` gives `arrow.uuid` and `geoarrow.wkb` instead
    of bytes."""
    if extensions and isinstance(kind, (GeometryType, GeographyType)):
        return shape_type(kind)
    if isinstance(kind, UUIDType) and not extensions:
        return pa.binary(_UUID_BYTES)
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, FixedType):
        return pa.binary(kind.length)
    return _PRIMITIVES.get(type(kind))


def primitive_from_arrow(kind: pa.DataType, format_version: int = 2) -> IcebergType | None:
    """The Iceberg type that holds every value of an Arrow type that is not nested; None if there is none. Unsigned
    integers become the next signed type, timestamps with any zone timestamptz."""
    types = pa.types
    exact: tuple[tuple[Callable[[pa.DataType], bool], IcebergType], ...] = (
        (types.is_boolean, BooleanType()),
        (types.is_int64, LongType()),
        (types.is_uint32, LongType()),
        (types.is_float16, FloatType()),
        (types.is_float32, FloatType()),
        (types.is_float64, DoubleType()),
        (types.is_date, DateType()),
        (is_text, StringType()),
        (is_bytes, BinaryType()),
    )
    for test, result in exact:
        if test(kind):
            return result
    if types.is_integer(kind):
        return None if types.is_uint64(kind) else IntegerType()
    if types.is_time(kind):
        return None if kind.unit == "ns" else TimeType()
    if types.is_timestamp(kind):
        if kind.unit == "ns" and format_version >= 3:
            return TimestampNanoType() if kind.tz is None else TimestamptzNanoType()
        return TimestampType() if kind.tz is None else TimestamptzType()
    if types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale) if kind.precision <= 38 and kind.scale >= 0 else None
    if types.is_fixed_size_binary(kind):
        return FixedType(kind.byte_width)
    if isinstance(kind, pa.UuidType):
        return UUIDType()
    if isinstance(kind, pa.JsonType):
        return StringType()
    if types.is_null(kind) and format_version >= 3:
        return UnknownType()
    return None


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether an Arrow type is any of its kinds of binary of varying length."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type of the same values without dictionaries, runs, views and extensions whose storage Arrow tells
    (`arrow.bool8`, `arrow.json`), and with lists of one kind only."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return pa.large_string() if types.is_string_view(kind) else pa.large_binary()
    if types.is_struct(kind):
        return pa.struct([plain_field(kind.field(index)) for index in range(kind.num_fields)])
    if is_list_like(kind):
        return pa.list_(plain_field(kind.value_field))
    if types.is_map(kind):
        return pa.map_(plain_field(kind.key_field), plain_field(kind.item_field), kind.keys_sorted)
    if isinstance(kind, pa.Bool8Type):
        return pa.bool_()
    return pa.json_(plain_type(kind.storage_type)) if isinstance(kind, pa.JsonType) else kind


def plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def is_list_like(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def list_like(kind: pa.DataType, element: pa.Field) -> pa.DataType:
    """A list of the same kind with other elements."""
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(element, kind.list_size)
    makers = {pa.types.is_large_list: pa.large_list, pa.types.is_list_view: pa.list_view}
    makers[pa.types.is_large_list_view] = pa.large_list_view
    return next((make for test, make in makers.items() if test(kind)), pa.list_)(element)


def is_lossless(kind: pa.DataType, target: IcebergType) -> bool:
    """Whether an Arrow type that is not nested fits an Iceberg type without rounding, zones told apart; single values
    may still be refused."""
    types = pa.types
    if isinstance(target, (IntegerType, LongType)):
        bits = 32 if isinstance(target, IntegerType) else 64
        return bool(
            (types.is_signed_integer(kind) and kind.bit_width <= bits)
            or (types.is_unsigned_integer(kind) and kind.bit_width < bits)
        )
    if isinstance(target, (FloatType, DoubleType)):
        return bool(types.is_floating(kind) and kind.bit_width <= (32 if isinstance(target, FloatType) else 64))
    if isinstance(target, DecimalType):
        return bool(
            types.is_decimal(kind)
            and 0 <= kind.scale <= target.scale
            and kind.precision - kind.scale <= target.precision - target.scale
        )
    if isinstance(target, LOCAL_TIMESTAMPS):
        return bool(types.is_timestamp(kind) and kind.tz is None)
    if isinstance(target, ZONED_TIMESTAMPS):
        return bool(types.is_timestamp(kind) and kind.tz is not None)
    if isinstance(target, (FixedType, UUIDType)):
        length = target.length if isinstance(target, FixedType) else 16
        return is_bytes(kind) or bool(types.is_fixed_size_binary(kind) and kind.byte_width == length)
    if isinstance(target, (BinaryType, GeometryType, GeographyType)):
        return is_bytes(kind) or bool(types.is_fixed_size_binary(kind))
    if isinstance(target, TimeType):
        return bool(types.is_time(kind))
    tests: dict[type[IcebergType], Callable[[pa.DataType], bool]] = {
        BooleanType: types.is_boolean,
        DateType: types.is_date,
        StringType: is_text,
        UnknownType: types.is_null,
    }
    test = tests.get(type(target))
    return bool(test is not None and test(kind))


def byte_width(kind: IcebergType) -> int | None:
    """The length of every value of a type, if it is bytes of one length."""
    if isinstance(kind, FixedType):
        return kind.length
    return _UUID_BYTES if isinstance(kind, UUIDType) else None


def stands_for(
    kind: pa.DataType, wanted: IcebergType, file_format: str, int96: bool = False, uuid: bool | None = None
) -> bool:
    """Whether every reader reads a file's values as the table's type and means the same. All readers know the unit of
    INT96. Java tells UUIDs in Avro by their mark alone (`uuid`; None if no mark is needed)."""
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


# ----------------------------------------------------------------------------------- values of Parquet's footers


_UNIT_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def bound_decoder(arrow: pa.DataType, kind: IcebergType) -> Callable[[Any, bool], Any] | None:
    """A function from a raw bound of a Parquet footer, and whether it is an upper one, to a stored value; None if none
    is. Digits that are lost round an upper bound up."""
    types = pa.types
    if isinstance(kind, (IntegerType, LongType)) and types.is_integer(arrow):
        if types.is_unsigned_integer(arrow):
            mask = (1 << max(arrow.bit_width, 32)) - 1
            return lambda raw, _upper: _within(raw & mask, kind)
        return lambda raw, _upper: raw
    if isinstance(kind, (FloatType, DoubleType)) and types.is_floating(arrow):
        return None if types.is_float16(arrow) else lambda raw, _upper: raw
    if isinstance(kind, DecimalType) and types.is_decimal(arrow):
        return _decimal_decoder(arrow.scale, kind)
    if isinstance(kind, TimeType) and types.is_time(arrow):
        return _unit_decoder(arrow.unit, 1_000)
    if isinstance(kind, MICRO_TIMESTAMPS) and types.is_timestamp(arrow):
        return _unit_decoder(arrow.unit, 1_000)
    if isinstance(kind, NANO_TIMESTAMPS) and types.is_timestamp(arrow):
        return _unit_decoder(arrow.unit, 1)
    if isinstance(kind, StringType) and (is_text(arrow) or is_bytes(arrow)):
        return _decode_text
    if isinstance(kind, UUIDType) and (types.is_fixed_size_binary(arrow) or isinstance(arrow, pa.UuidType)):
        return lambda raw, _upper: UUID(bytes=bytes(raw))
    plain: tuple[tuple[type[IcebergType], bool], ...] = (
        (BooleanType, types.is_boolean(arrow)),
        (DateType, types.is_date32(arrow)),
        (BinaryType, is_bytes(arrow) or is_text(arrow) or types.is_fixed_size_binary(arrow)),
        (FixedType, types.is_fixed_size_binary(arrow)),
    )
    if any(isinstance(kind, known) and fits for known, fits in plain):
        return lambda raw, _upper: raw
    return None


def _within(value: int, kind: IcebergType) -> int | None:
    bits = 31 if isinstance(kind, IntegerType) else 63
    return value if value < 1 << bits else None


def _decode_text(raw: Any, _upper: bool) -> str | None:
    try:
        return raw if isinstance(raw, str) else bytes(raw).decode()
    except UnicodeDecodeError:
        return None


def _decimal_decoder(file_scale: int, kind: DecimalType) -> Callable[[Any, bool], Any] | None:
    if file_scale > kind.scale:
        return None
    factor = 10 ** (kind.scale - file_scale)

    def decode(raw: Any, _upper: bool) -> Any:
        unscaled = raw if isinstance(raw, int) else int.from_bytes(bytes(raw), "big", signed=True)
        return decimal_value(unscaled * factor, kind.scale)

    return decode


def _unit_decoder(unit: str, target_nanos: int) -> Callable[[Any, bool], Any]:
    nanos = _UNIT_NANOS[unit]
    if nanos >= target_nanos:
        factor = nanos // target_nanos
        return lambda raw, _upper: _to_long(raw * factor)
    divisor = target_nanos // nanos
    return lambda raw, upper: -(-raw // divisor) if upper else raw // divisor


def _to_long(value: int) -> int | None:
    return value if -(1 << 63) <= value < 1 << 63 else None
