"""Avro types of primitive values, in manifests and in data files.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" (Avro).
"""

from __future__ import annotations

from typing import Any

from hms_iceberg.spec.data_types import (
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

_PLAIN: dict[type[IcebergType], Any] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
    GeometryType: "bytes",
    GeographyType: "bytes",
    UnknownType: "null",
    DateType: {"type": "int", "logicalType": "date"},
    TimeType: {"type": "long", "logicalType": "time-micros"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    TimestamptzType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    TimestampNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    TimestamptzNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
}


def decimal_bytes(precision: int) -> int:
    """How many bytes an unscaled decimal of this precision needs, sign included."""
    return ((10**precision - 1).bit_length() + 8) // 8


def avro_primitive(kind: IcebergType, named: set[str]) -> Any | None:
    """The Avro type of a primitive type; None if there is none.

    Args:
        kind: the type.
        named: the names that the schema has defined so far; a named type is defined once, and then referred to.
    """
    described: dict[str, Any]
    if isinstance(kind, UUIDType):
        described = {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}
    elif isinstance(kind, FixedType):
        described = {"type": "fixed", "name": f"fixed_{kind.length}", "size": kind.length}
    elif isinstance(kind, DecimalType):
        described = {
            "type": "fixed",
            "name": f"decimal_{kind.precision}_{kind.scale}",
            "size": decimal_bytes(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    else:
        return _PLAIN.get(type(kind))
    name: str = described["name"]
    if name in named:
        return name
    named.add(name)
    return described
