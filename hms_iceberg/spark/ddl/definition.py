"""CREATE and REPLACE TABLE: the definition of a table, and its partition transforms as Spark parsed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from hms_iceberg.errors import InvalidPartitionSpecError, UnsupportedError
from hms_iceberg.metastore import Identifier
from hms_iceberg.spark.ddl.column_json import ColumnDefinition, schema_of
from hms_iceberg.spark.shown_properties import SHOWN, identified, sort_order_of
from hms_iceberg.spec.partitions.partition_specs import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortOrder
from hms_iceberg.spec.table_properties import FILE_FORMAT
from hms_iceberg.spec.transforms.partition_transforms import SPELLINGS, Transform, transform_of_sql


class PartitionTerm(msgspec.Struct, frozen=True):
    """One transform as Spark parsed it: its name, the columns that it names, and its number where it has one."""

    transform: str
    columns: list[list[str]]
    number: int | None = None

    def __str__(self) -> str:
        arguments = [*([] if self.number is None else [str(self.number)]), *map(".".join, self.columns)]
        return f"{self.transform}({', '.join(arguments)})"


def spec_of(terms: Sequence[PartitionTerm], schema: Schema, table: str) -> PartitionSpec:
    """The spec of a new table. Its fields are named as Apache Iceberg names them: `id_bucket`, `ts_day`."""
    fields = []
    for number, term in enumerate(terms, PARTITION_FIELD_ID_START):
        transform = transform_of(term, table)
        column = ".".join(term.columns[0])
        source = schema.find_field(column, case_sensitive=False)
        own = schema.find_column_name(source.field_id) or column
        fields.append(PartitionField(source.field_id, number, transform, _name(own, transform)))
    return PartitionSpec(*fields)


def transform_of(term: PartitionTerm, table: str) -> Transform:
    """The transform that a term stands for."""
    if len(term.columns) != 1:
        raise InvalidPartitionSpecError(
            f"Cannot partition the table {table} by {term}: a transform takes one column. Partition by several terms."
        )
    name = term.transform.lower()
    kind = SPELLINGS.get(name)
    if kind is None:
        raise UnsupportedError(
            f"Cannot partition the table {table} by {term}: Iceberg has no such transform. Use a column itself, years, "
            "months, days, hours, bucket(n, column) or truncate(width, column)."
        )
    if not kind.takes_number:
        return kind()
    if term.number is None or term.number <= 0:
        raise InvalidPartitionSpecError(
            f"Cannot partition the table {table} by {term}: expected a positive number, such as {name}(16, column)."
        )
    return transform_of_sql(name, term.number)


def _name(column: str, transform: Transform) -> str:
    return column if transform.is_identity else f"{column}_{transform.suffix}"


_LOCATION, _PROVIDER, _FORMAT = "location", "provider", FILE_FORMAT.name
_OF_SPARK = ("external", "is_managed_location", "table_type")  # what Spark says about a table, not to it
_FILE_FORMATS = ("parquet", "avro", "orc")


class DefineTable(msgspec.Struct, frozen=True):
    """CREATE TABLE and REPLACE TABLE; `name` is for errors."""

    name: str
    catalog: int
    namespace: str
    table: str
    columns: list[ColumnDefinition]
    partitioning: list[PartitionTerm]
    # TBLPROPERTIES and OPTIONS, and what Spark puts beside them: `provider`, `location`, `comment`, `owner`
    properties: dict[str, str]

    @property
    def identifier(self) -> Identifier:
        return (self.namespace, self.table)

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Catalog.create_table` and of the transactions that create and replace, after the name."""
        parts = self._parts()
        return {
            "schema": parts.schema,
            "location": self.properties.get(_LOCATION),
            "partition_spec": parts.spec,
            "sort_order": parts.order,
            "properties": self._table_properties(),
        }

    def _parts(self) -> _Parts:
        schema = schema_of(self.columns, self.name)
        schema = identified(schema, self.properties.get("identifier-fields"))
        spec = spec_of(self.partitioning, schema, self.name)
        return _Parts(schema, spec, sort_order_of(self.properties.get("sort-order"), schema, self.name))

    def _table_properties(self) -> dict[str, str]:
        hidden = (_LOCATION, _PROVIDER, *_OF_SPARK, *SHOWN)
        kept = {key: value for key, value in self.properties.items() if key not in hidden}
        provider = self.properties.get(_PROVIDER, "iceberg").lower()
        if provider in _FILE_FORMATS:
            return {**kept, _FORMAT: provider}
        if provider != "iceberg":
            raise UnsupportedError(
                f"Cannot create the table {self.name} USING {provider}: this catalog has Iceberg tables. Say USING "
                "iceberg, or parquet, orc or avro for the format of its files."
            )
        return kept


@dataclass(frozen=True)
class _Parts:
    schema: Schema
    spec: PartitionSpec
    order: SortOrder
