"""The schema that Spark keeps in a Hive table's parameters, as Iceberg types.

Spark stores its own schema as JSON beside the Hive columns, because Hive's has lower-case names and lacks some types.
For a table of a Spark data source (`spark.sql.sources.provider`) it is the only true one. Source: Apache Spark,
"Parquet Files", "Hive metastore Parquet table conversion".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.migration.hive.hive_types import TypeOptions, parse_hive_type
from hms_iceberg.spec.data_types import IcebergType, ListType, MapType, NestedField, StringType, StructType

_SCHEMA = "spark.sql.sources.schema"
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_HIVE_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def spark_schema_json(parameters: Mapping[str, str]) -> dict[str, Any] | None:
    """Spark's schema out of a table's parameters; None if Spark left none, or left it cut off.

    Large schemas are split into numbered parts.
    """
    text = parameters.get(_SCHEMA)
    if text is None:
        parts = parameters.get(f"{_SCHEMA}.numParts")
        if parts is None or not parts.isdecimal():
            return None
        text = "".join(parameters.get(f"{_SCHEMA}.part.{number}", "") for number in range(int(parts)))
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("fields"), list) else None


def parse_spark_schema(schema: Mapping[str, Any], options: TypeOptions, ids: Iterator[int]) -> tuple[NestedField, ...]:
    """Read the columns of a Spark schema.

    Args:
        schema: the JSON of a `StructType`.
        options: choices for timestamps and chars.
        ids: gives an id to each field.

    Returns:
        The columns, all optional.

    Raises:
        UnsupportedError: Iceberg cannot hold a column's type; names the column and says why.
    """
    return _TypeConverter(options, ids).struct(schema).fields


class _TypeConverter:
    def __init__(self, options: TypeOptions, ids: Iterator[int]) -> None:
        self._options = options
        self._ids = ids

    def struct(self, schema: Mapping[str, Any]) -> StructType:
        fields = []
        for item in schema["fields"]:
            metadata = item.get("metadata") or {}
            try:
                kind = self.convert(metadata.get(_CHAR_TYPE) or item["type"])
            except UnsupportedError as error:
                raise UnsupportedError(f"Column {item['name']!r}: {error}") from error
            fields.append(NestedField(next(self._ids), item["name"], kind, doc=metadata.get("comment")))
        return StructType(*fields)

    def convert(self, kind: Any) -> IcebergType:
        if isinstance(kind, str):
            if kind.startswith("string collate"):
                return StringType()
            return parse_hive_type(_HIVE_NAMES.get(kind, kind), self._options, self._ids)
        name = kind.get("type") if isinstance(kind, Mapping) else None
        if name == "struct":
            return self.struct(kind)
        if name == "array":
            return ListType(next(self._ids), self.convert(kind["elementType"]), element_required=False)
        if name == "map":
            key, value = self.convert(kind["keyType"]), self.convert(kind["valueType"])
            return MapType(next(self._ids), key, next(self._ids), value, value_required=False)
        raise UnsupportedError(f"Spark type {kind!r} cannot be migrated: it is not a type that Iceberg knows.")
