"""Types of Kafka Connect, as the schema beside a JSON payload tells them, and the names of Connect and Debezium.

Source: Kafka Connect's JsonConverter and `org.apache.kafka.connect.data`; Debezium's documentation, "Data type
mappings" and "Temporal values".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from hms_iceberg.ingest.values.source_types import (
    MICRO,
    MILLI,
    NANO,
    Form,
    SourceType,
    dates,
    list_of,
    map_of,
    struct_of,
    times,
    timestamps,
)
from hms_iceberg.spec.data_types import (
    MAX_DECIMAL_PRECISION,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

_PRIMITIVES: Mapping[str, IcebergType] = {
    "int8": IntegerType(),
    "int16": IntegerType(),
    "int32": IntegerType(),
    "int64": LongType(),
    "float": FloatType(),
    "float32": FloatType(),
    "double": DoubleType(),
    "float64": DoubleType(),
    "boolean": BooleanType(),
    "string": StringType(),
    "bytes": BinaryType(),
}

Parameters = Mapping[str, Any]


def decimals(scale: int, precision: int | None = None) -> SourceType:
    """Decimals of bytes; of more digits than Iceberg has, their text."""
    digits = MAX_DECIMAL_PRECISION if precision is None else precision
    fits = 0 <= scale <= digits and 0 < digits <= MAX_DECIMAL_PRECISION
    return SourceType(DecimalType(digits, scale) if fits else StringType(), Form.UNSCALED, scale=scale)


def _connect_decimal(parameters: Parameters) -> SourceType:
    precision = parameters.get("connect.decimal.precision")
    return decimals(int(parameters.get("scale", 0)), None if precision is None else int(precision))


def _always(kind: SourceType) -> Callable[[Parameters], SourceType]:
    return lambda parameters: kind


# What a schema of one of these names is. Others are as their type without the name says: Debezium's `Json`, `Xml`,
# `Enum`, `Ltree`, `ZonedTime` and `Interval` are text, its `MicroDuration` and `Year` numbers, its `Bits` bytes.
NAMED: Mapping[str, Callable[[Parameters], SourceType]] = MappingProxyType(
    {
        "org.apache.kafka.connect.data.Decimal": _connect_decimal,
        "org.apache.kafka.connect.data.Date": _always(dates()),
        "org.apache.kafka.connect.data.Time": _always(times(MILLI)),
        "org.apache.kafka.connect.data.Timestamp": _always(timestamps(MILLI, zoned=True)),
        "io.debezium.time.Date": _always(dates()),
        "io.debezium.time.Time": _always(times(MILLI)),
        "io.debezium.time.MicroTime": _always(times(MICRO)),
        "io.debezium.time.NanoTime": _always(times(NANO)),
        "io.debezium.time.Timestamp": _always(timestamps(MILLI, zoned=False)),
        "io.debezium.time.MicroTimestamp": _always(timestamps(MICRO, zoned=False)),
        "io.debezium.time.NanoTimestamp": _always(timestamps(NANO, zoned=False)),
        "io.debezium.time.ZonedTimestamp": _always(SourceType(TimestamptzType())),
        "io.debezium.time.IsoDate": _always(SourceType(DateType())),
        "io.debezium.time.IsoTime": _always(SourceType(TimeType())),
        "io.debezium.time.IsoTimestamp": _always(SourceType(TimestampType())),
        "io.debezium.data.Uuid": _always(SourceType(UUIDType())),
        "io.debezium.data.VariableScaleDecimal": _always(SourceType(StringType(), Form.VARIABLE)),
    }
)


def connect_type(schema: Any) -> SourceType:
    """The type that a schema of JSON's `schema` field describes; ValueError if it describes none."""
    if not isinstance(schema, dict):
        raise ValueError(f"{schema!r} is no schema of Kafka Connect")
    kind = schema.get("type")
    named = NAMED.get(schema.get("name") or "")
    if named is not None:
        return named(schema.get("parameters") or {})
    if kind == "struct":
        fields = schema.get("fields") or []
        return struct_of(
            {each["field"]: connect_type(each) for each in fields},
            {each["field"]: bool(each.get("optional")) for each in fields},
        )
    if kind == "array":
        return list_of(connect_type(schema.get("items")))
    if kind == "map":
        return map_of(connect_type(schema.get("keys")), connect_type(schema.get("values")))
    primitive = _PRIMITIVES.get(str(kind))
    if primitive is None:
        raise ValueError(f"{kind!r} is no type of Kafka Connect")
    return SourceType(primitive)
