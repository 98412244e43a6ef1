"""Columns whose values are those of a file's partition."""

from __future__ import annotations

from collections.abc import Collection

from hms_iceberg.scan.partition_columns import field_types
from hms_iceberg.spark.schemas import is_held
from hms_iceberg.spec.data_types import IcebergType, NestedField, UnknownType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema


class Identities:
    """By which columns' own values the files of each spec of a table are partitioned, as far as Spark can hold them."""

    def __init__(self, metadata: TableMetadata, schema: Schema) -> None:
        self._metadata, self._schema = metadata, schema
        self._types = field_types(metadata)

    def of(self, spec_id: int) -> dict[int, int]:
        """The ids of the columns, and which of the spec's fields each is."""
        return {
            field.source_id: number
            for number, field in enumerate(self._metadata.spec_by_id(spec_id).fields)
            if str(field.transform) == "identity" and self._is_usable(field.source_id)
        }

    def shared(self, spec_ids: Collection[int]) -> list[NestedField]:
        """The columns that are so for all of some specs."""
        common = set.intersection(*(set(self.of(each)) for each in spec_ids)) if spec_ids else set()
        return [
            field
            for field in self._schema.fields
            if field.field_id in common and field.field_type.is_primitive and not _is_unknown(field.field_type)
        ]

    def read_type(self, field_id: int) -> IcebergType:
        """The type as which a column is read; that which it had last if it is not there any more."""
        field: NestedField | None = self._schema.index_by_id.get(field_id)
        return self._type(field_id) if field is None else field.field_type

    def _is_usable(self, field_id: int) -> bool:
        kind = self._type(field_id)
        return not _is_unknown(kind) and is_held(kind) and is_held(self.read_type(field_id))

    def _type(self, field_id: int) -> IcebergType:
        return self._types.get(field_id, UnknownType())


def _is_unknown(field_type: IcebergType) -> bool:
    return isinstance(field_type, UnknownType)
