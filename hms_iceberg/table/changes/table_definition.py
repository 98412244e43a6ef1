"""The definition of a table: the arguments with which it is created or replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.columns.arrow_schema import from_arrow
from hms_iceberg.arrow.writing.given_rows import ArrowInput, schema_of
from hms_iceberg.spec.metadata.format_rules import split_properties
from hms_iceberg.spec.metadata.metadata_definition import new_table_metadata, replace_table_metadata
from hms_iceberg.spec.metadata.table_metadata import DEFAULT_FORMAT_VERSION, TableMetadata
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder
from hms_iceberg.spec.table_properties import check_properties, with_defaults

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TableDefinition:
    """A table as its creator describes it. Spec and order name columns by source ids of `schema`, whose field ids are
    assigned anew; without a location the catalog, or the replaced table, decides."""

    schema: Schema | pa.Schema | ArrowInput
    location: str | None = None
    partition_spec: PartitionSpec = UNPARTITIONED
    sort_order: SortOrder = UNSORTED
    properties: Mapping[str, Any] | None = None

    def resolved(self, catalog: Mapping[str, str]) -> TableDefinition:
        """The definition with an Iceberg schema, and with the catalog's `table-default.*` and `table-override.*`."""
        properties = with_defaults("table", self.properties, catalog)
        own, asked = split_properties(properties)
        check_properties(own)
        version = asked or DEFAULT_FORMAT_VERSION
        given = self.schema
        schema = given if isinstance(given, Schema) else from_arrow(schema_of(given), format_version=version)
        return replace(self, schema=schema, properties=properties)

    def new_metadata(self) -> TableMetadata:
        """The first metadata of a table with this definition, which must be resolved and have a location."""
        assert isinstance(self.schema, Schema) and self.location is not None
        return new_table_metadata(
            schema=self.schema,
            partition_spec=self.partition_spec,
            sort_order=self.sort_order,
            location=self.location,
            properties=self.properties or {},
        )

    def replacing(self, metadata: TableMetadata) -> TableMetadata:
        """A table's metadata after it is replaced by this (resolved) definition; see `replace_table_metadata`."""
        assert isinstance(self.schema, Schema)
        properties = self.properties or {}
        return replace_table_metadata(
            metadata, self.schema, self.partition_spec, self.sort_order, self.location, properties
        )
