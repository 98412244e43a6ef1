"""Types of Avro schemas, with the names that Kafka Connect's converter adds to them.

Source: Avro specification, "Logical Types"; `connect.name` and `connect.parameters` of Confluent's AvroConverter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from hms_iceberg.ingest.values.connect_types import NAMED, decimals
from hms_iceberg.ingest.values.source_types import (
    MICRO,
    MILLI,
    NANO,
    UNTYPED,
    SourceType,
    dates,
    list_of,
    map_of,
    struct_of,
    times,
    timestamps,
)
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    UUIDType,
)

_PRIMITIVES: Mapping[str, IcebergType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
}

_LOGICAL: Mapping[str, Callable[[dict[str, Any]], SourceType]] = MappingProxyType(
    {
        "date": lambda schema: dates(),
        "time-millis": lambda schema: times(MILLI),
        "time-micros": lambda schema: times(MICRO),
        "timestamp-millis": lambda schema: timestamps(MILLI, zoned=True),
        "timestamp-micros": lambda schema: timestamps(MICRO, zoned=True),
        "timestamp-nanos": lambda schema: timestamps(NANO, zoned=True),
        "local-timestamp-millis": lambda schema: timestamps(MILLI, zoned=False),
        "local-timestamp-micros": lambda schema: timestamps(MICRO, zoned=False),
        "local-timestamp-nanos": lambda schema: timestamps(NANO, zoned=False),
        "decimal": lambda schema: decimals(int(schema.get("scale", 0)), int(schema["precision"])),
        "uuid": lambda schema: SourceType(UUIDType()),
    }
)


def avro_type(schema: Any, named: Mapping[str, Any]) -> SourceType:
    """The type that an Avro schema describes, as fastavro has parsed it (with full names), given the schemas that it
    names."""
    return _AvroTypes(named).of(schema)


class _AvroTypes:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._within: list[str] = []

    def of(self, schema: Any) -> SourceType:
        if isinstance(schema, list):
            branches = [each for each in schema if each != "null"]
            return self.of(branches[0]) if len(branches) == 1 else UNTYPED
        if isinstance(schema, str):
            return self._of_name(schema)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.of(kind)
        described = _described(schema)
        if described is not None:
            return described
        if kind in ("record", "error"):
            return self._record(schema)
        if kind == "array":
            return list_of(self.of(schema["items"]))
        if kind == "map":
            return map_of(SourceType(StringType()), self.of(schema["values"]))
        if kind == "fixed":
            return SourceType(FixedType(schema["size"]))
        return self._of_name(kind)

    def _of_name(self, name: str) -> SourceType:
        if name in _PRIMITIVES:
            return SourceType(_PRIMITIVES[name])
        if name == "null" or name in self._within:  # a record within itself is no column
            return UNTYPED
        return self.of(self._named[name])

    def _record(self, schema: dict[str, Any]) -> SourceType:
        self._within.append(schema["name"])
        try:
            fields = {each["name"]: self.of(each["type"]) for each in schema["fields"]}
        finally:
            self._within.pop()
        return struct_of(fields, {each["name"]: _is_optional(each["type"]) for each in schema["fields"]})


def _described(schema: dict[str, Any]) -> SourceType | None:
    """The type that Connect's name or Avro's logical type tells; None if there is neither."""
    name = schema.get("connect.name")
    if name == "org.apache.kafka.connect.data.Decimal" and "precision" in schema:
        name = None  # the logical type knows more
    named = NAMED.get(name or "")
    if named is not None:
        return named(schema.get("connect.parameters") or {})
    logical = _LOGICAL.get(schema.get("logicalType", ""))
    return None if logical is None else logical(schema)


def _is_optional(schema: Any) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)


def without_logical_types(schema: Any) -> Any:
    """The schema by which fastavro gives the values as they are stored."""
    if isinstance(schema, list):
        return [without_logical_types(each) for each in schema]
    if isinstance(schema, dict):
        return {
            key: value if key in ("default", "doc", "symbols") else without_logical_types(value)
            for key, value in schema.items()
            if key != "logicalType"
        }
    return schema
