"""The columns of a Hive table, by the metastore and by the schema that Spark keeps in its properties.

Spark stores its own schema as JSON beside the Hive columns, because Hive's has lower-case names and lacks some types.
For a table of a Spark data source (`spark.sql.sources.provider`) it is the only true one. Source: Apache Spark,
"Parquet Files", "Hive metastore Parquet table conversion".
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.hms.rows.hive_rows import HiveColumn, HivePartition, HiveTable
from hms_iceberg.migration.hive.format_footers import provider_of
from hms_iceberg.migration.hive.hive_types import TypeOptions, parse_hive_type
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from hms_iceberg.spec.values.single_values import from_python

_IDS = re.compile(r"\b\d+: ")
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def columns_of(table: HiveTable, options: TypeOptions) -> tuple[NestedField, ...]:
    """A Hive table's columns: data columns, then partition columns; Spark's own schema if one is still true."""
    ids = count(1)
    spark_json = spark_schema_json(table.parameters)
    is_spark_source = provider_of(table) != "hive"
    if is_spark_source and spark_json is not None:
        return _spark_ordered(table, parse_spark_schema(spark_json, options, ids))
    hive = tuple(_hive_column(column, options, ids) for column in (*table.columns, *table.partition_keys))
    if spark_json is None:
        return hive
    try:
        spark = parse_spark_schema(spark_json, options, ids)
    except UnsupportedError:
        return hive
    same = len(spark) == len(hive) and all(
        theirs.name.lower() == ours.name and _folded(theirs.field_type) == _folded(ours.field_type)
        for theirs, ours in zip(spark, hive, strict=True)
    )
    return tuple(replace(field, doc=hive[index].doc) for index, field in enumerate(spark)) if same else hive


def _hive_column(column: HiveColumn, options: TypeOptions, ids: Iterator[int]) -> NestedField:
    try:
        kind = parse_hive_type(column.type, options, ids)
    except UnsupportedError as error:
        raise UnsupportedError(f"Column {column.name!r}: {error}") from error
    return NestedField(next(ids), column.name, kind, doc=column.comment)


def _spark_ordered(table: HiveTable, fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    """Spark's columns with the partition columns last, in the order of the metastore's partition keys."""
    names = Counter(field.name.lower() for field in fields)
    twice = [name for name, number in names.items() if number > 1]
    if twice:
        raise UnsupportedError(f"two columns are called {twice[0]!r} but for upper and lower case.")
    by_name = {field.name.lower(): field for field in fields}
    expected = int(table.parameters.get("spark.sql.sources.schema.numPartCols", "0") or 0)
    keys = [key.name.lower() for key in table.partition_keys]
    if len(keys) != expected or not set(keys) <= by_name.keys():
        raise UnsupportedError(
            "its partitions are not in the metastore (a table of Spark 2.0 or older); run "
            f"`MSCK REPAIR TABLE {table}` in Spark first."
        )
    return (*(field for field in fields if field.name.lower() not in keys), *(by_name[key] for key in keys))


def _folded(kind: IcebergType) -> str:
    return _IDS.sub("", str(kind)).lower()


# ------------------------------------------------------------------------------------- partition values


def stored_values(partition: HivePartition, keys: Sequence[NestedField]) -> tuple[Any, ...]:
    """The values of a partition as Iceberg stores them, in the order of `keys`; None for Hive's default partition."""
    values: list[Any] = []
    for text, key in zip(partition.values, keys, strict=True):
        if text == HIVE_NULL:
            values.append(None)
            continue
        try:
            values.append(from_python(key.field_type, _python_text(text, key.field_type)))
        except InvalidInputError as error:
            raise UnsupportedError(
                f"the partition {key.name}={text} is not a {key.field_type} ({error}); drop or rename the partition."
            ) from error
    return tuple(values)


def _python_text(text: str, kind: IcebergType) -> str:
    """Hive's text of a value in ISO's form: a blank between date and time becomes a T."""
    if isinstance(kind, MICRO_TIMESTAMPS):
        return text.strip().replace(" ", "T")
    return text if isinstance(kind, StringType) else text.strip()


_SCHEMA = "spark.sql.sources.schema"
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_HIVE_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def spark_schema_json(parameters: Mapping[str, str]) -> dict[str, Any] | None:
    """Spark's schema in a table's parameters, in numbered parts if it is large; None if it is missing or cut off."""
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
    """Reads the columns of a Spark schema, all as optional; `schema` is the JSON of a `StructType`."""
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
