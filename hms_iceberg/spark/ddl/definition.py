"""A new table as Spark defines it, and as catalogs take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.metastore import Identifier
from hms_iceberg.spark.ddl.column_json import ColumnDefinition, schema_of
from hms_iceberg.spark.ddl.partition_terms import PartitionTerm, spec_of
from hms_iceberg.spark.shown_properties import SHOWN, identified, sort_order_of
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortOrder
from hms_iceberg.spec.table_properties import FILE_FORMAT

_LOCATION, _PROVIDER, _FORMAT = "location", "provider", FILE_FORMAT.name
_OF_SPARK = ("external", "is_managed_location", "table_type")  # what Spark says about a table, not to it
_FILE_FORMATS = ("parquet", "avro", "orc")


class DefineTable(msgspec.Struct, frozen=True):
    """What CREATE TABLE and REPLACE TABLE say.

    Args:
        name: the table's name, for errors.
        catalog: the catalog's number.
        namespace, table: the name in the catalog.
        columns: the columns.
        partitioning: PARTITIONED BY.
        properties: TBLPROPERTIES and OPTIONS, and what Spark puts beside them: `provider`, `location`, `comment`,
            `owner`.
    """

    name: str
    catalog: int
    namespace: str
    table: str
    columns: list[ColumnDefinition]
    partitioning: list[PartitionTerm]
    properties: dict[str, str]

    @property
    def identifier(self) -> Identifier:
        """The name in the catalog."""
        return (self.namespace, self.table)

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Catalog.create_table` and of the transactions that create and replace, after the name.

        Raises:
            UnsupportedError: a type, a transform or a format of files that Iceberg does not have.
            InvalidInputError: parts that do not fit each other.
        """
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
