"""Splitting batches by partition.

Source: Iceberg specification, "Partitioning".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import to_stored
from hms_iceberg.arrow.columns.column_transforms import transform_array
from hms_iceberg.arrow.rows.row_identity import comparable
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import IcebergType, UnknownType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import UnknownTransform

Partition = tuple[Any, ...]


class PartitionSplitter:
    def __init__(self, schema: Schema, spec: PartitionSpec) -> None:
        for field in spec.fields:
            if isinstance(field.transform, UnknownTransform):
                raise UnsupportedError(
                    f"Cannot write with partition spec {spec.spec_id}: the transform {field.transform} of field "
                    f"{field.name!r} is unknown to this version. Write with a newer version, or change the spec."
                )
        self._spec = spec
        self._sources = [_PartitionSource(schema, field) for field in spec.fields]

    def split(self, batch: pa.RecordBatch) -> list[tuple[Partition, pa.RecordBatch]]:
        """The rows of a batch by partition, in the order of first rows; rows keep their order and share memory."""
        partitions, codes = self.numbered(batch)
        return list(zip(partitions, grouped(batch, codes, len(partitions)), strict=True))

    def numbered(self, batch: pa.RecordBatch) -> tuple[list[Partition], Any]:
        """The partitions of a batch in the order of first rows, and for each row the number of its partition."""
        if not batch.num_rows:
            return [], np.zeros(0, np.int64)
        if self._spec.is_unpartitioned():
            return [(None,) * len(self._spec.fields)], np.zeros(batch.num_rows, np.int64)
        columns = self.partition_columns(batch)
        codes, groups = _codes(columns)
        first = np.empty(groups, np.int64)
        first[codes[::-1]] = np.arange(batch.num_rows)[::-1]  # of several rows of a group, the one assigned last stays
        return self._tuples(columns, first), codes

    def partition_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return [source.partition_column(batch) for source in self._sources]

    def _tuples(self, columns: Sequence[pa.Array], rows: Any) -> list[Partition]:
        indices = pa.array(rows)
        values = [
            to_stored(column.take(indices), source.result)
            for column, source in zip(columns, self._sources, strict=True)
        ]
        return list(zip(*values, strict=True))


def grouped(batch: pa.RecordBatch, codes: Any, groups: int) -> list[pa.RecordBatch]:
    """The rows of each group by their codes; they keep their order and share memory, and a group may be empty."""
    if groups < 2:
        return [batch] * groups
    small = np.uint16 if groups <= 1 << 16 else np.int64  # numbers of 16 bits are sorted by radix
    if np.any(codes[1:] < codes[:-1]):
        batch = batch.take(pa.array(np.argsort(codes.astype(small), kind="stable")))
    counts = np.bincount(codes, minlength=groups)
    starts = np.cumsum(counts) - counts
    return [batch.slice(start, count) for start, count in zip(starts.tolist(), counts.tolist(), strict=True)]


class _PartitionSource:
    """One partition field and where its source column is; the column of a void field may be gone."""

    def __init__(self, schema: Schema, field: PartitionField) -> None:
        self.transform = field.transform
        if field.transform.is_void and not schema.has_field(field.source_id):
            self.kind: IcebergType = UnknownType()
            self.path: tuple[int, ...] = ()
        else:
            self.kind = schema.find_type(field.source_id)
            self.path = source_path(schema, field.source_id)
        self.result = field.transform.result_type(self.kind)

    def partition_column(self, batch: pa.RecordBatch) -> pa.Array:
        if not self.path:
            return pa.nulls(batch.num_rows)
        return transform_array(self.transform, self.kind, column_at(batch, self.path))


def source_path(schema: Schema, source_id: int) -> tuple[int, ...]:
    """Positions that lead from the top of a batch to a column, which may lie in structs."""
    ids = [source_id, *schema.ancestor_ids(source_id)][::-1]
    fields = schema.fields
    path = []
    for field_id in ids:
        position = next(index for index, field in enumerate(fields) if field.field_id == field_id)
        path.append(position)
        fields = getattr(fields[position].field_type, "fields", ())
    return tuple(path)


def column_at(batch: pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    array = batch.column(path[0])
    for position in path[1:]:
        array = pc.struct_field(array, [position])  # null if the struct is null
    return array


def _codes(columns: Sequence[pa.Array]) -> tuple[Any, int]:
    """The number of each row's group, equal exactly if all columns are, in the order of first rows; and how many groups
    there are."""
    codes, groups = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        if pa.types.is_null(column.type):
            continue
        found, count = _encoded(comparable(column))
        codes, groups = (found, count) if groups == 1 else _encoded(pa.array(codes * count + found))
    return codes, groups


def _encoded(column: pa.Array) -> tuple[Any, int]:
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)
