"""Filters on metadata columns: `_file`, `_spec_id` and `_partition` are the same for all rows of a file.

`_pos`, `_row_id` and `_last_updated_sequence_number` differ by row, and are for the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hms_iceberg.expressions.bound import BoundPredicate
from hms_iceberg.expressions.literals import Reference
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression, UnboundPredicate
from hms_iceberg.expressions.visitors import ExpressionVisitor, RebuildingVisitor, bound_predicates, fold
from hms_iceberg.lazy import pl
from hms_iceberg.scan.partition_columns import PartitionColumns, partition_predicate, polars_dtype
from hms_iceberg.spec.data_types import NestedField, StructType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import (
    DELETED,
    FILE,
    METADATA_COLUMNS,
    PARTITION_ID,
    SPEC_ID,
    is_metadata_column,
    metadata_column,
)
from hms_iceberg.spec.schema import Schema

# In a filter the fields of `_partition` have ids of their own: a table's columns may have those of partition fields.
_PARTITION_FIELDS = 2_100_000_000
_OF_FILE = frozenset((FILE.field_id, SPEC_ID.field_id, DELETED.field_id, PARTITION_ID))


def filter_schema(metadata: TableMetadata, schema: Schema, expression: BooleanExpression) -> Schema:
    """The columns that a filter may name: those of a schema, and the metadata columns that it does name.

    Args:
        metadata: the table.
        schema: the columns of the rows; one of the name of a metadata column comes before it.
        expression: the filter, not bound.
    """
    return with_metadata_columns(metadata, schema, {name.split(".")[0] for name in fold(expression, _Names())})


def with_metadata_columns(metadata: TableMetadata, schema: Schema, names: Iterable[str] = METADATA_COLUMNS) -> Schema:
    """A schema, and some metadata columns with the ids that they have in filters.

    Args:
        metadata: the table.
        schema: the columns of the rows; one of the name of a metadata column comes before it.
        names: the columns that are wanted; those that are no metadata columns are left out.
    """
    columns = (
        metadata_column(name, metadata.partition_specs, schema)
        for name in sorted(names)
        if name.startswith("_") and name not in schema.index_by_name
    )
    extra = [_renumbered(each) for each in columns if each is not None]
    if not extra:
        return schema
    return Schema(*schema.fields, *extra, schema_id=schema.schema_id)


def _renumbered(column: NestedField) -> NestedField:
    if not isinstance(column.field_type, StructType):
        return column
    fields = (replace(each, field_id=_PARTITION_FIELDS + each.field_id) for each in column.field_type.fields)
    return replace(column, field_type=StructType(*fields))


class FileFilter:
    """The part of a filter that is about files as wholes.

    Args:
        expression: the filter, bound.
        partitions: the table's partition columns.
    """

    def __init__(self, expression: BooleanExpression, partitions: PartitionColumns) -> None:
        self._partitions = partitions
        self._types = {each.ref.field_id: each.ref.type for each in bound_predicates(expression) if is_of_file(each)}
        self._filter = only_tests(expression, is_of_file)

    @property
    def has_tests(self) -> bool:
        """Whether the filter tests any column that is the same for all rows of a file."""
        return bool(self._types)

    def mask(self, spec_id: int, files: pl.DataFrame) -> pl.Series | None:
        """Which files may hold a row that matches; None if all may.

        Args:
            spec_id: the spec of all files.
            files: the files of a manifest.
        """
        if isinstance(self._filter, AlwaysTrue):
            return None
        struct, names = self._partitions.structs[spec_id], self._partitions.columns(spec_id)
        columns = {FILE.field_id: "file_path", SPEC_ID.field_id: "spec_id", DELETED.field_id: "deleted"}
        frame = files.with_columns(deleted=pl.lit(False))
        columns |= {_PARTITION_FIELDS + field.field_id: name for field, name in zip(struct.fields, names, strict=True)}
        absent = {field_id: f"absent{field_id}" for field_id in self._types.keys() - columns.keys()}
        frame = frame.with_columns(
            pl.lit(None, polars_dtype(self._types[field_id])).alias(name) for field_id, name in absent.items()
        )
        return frame.with_columns(keep=partition_predicate(self._filter, columns | absent))["keep"]


def file_constants(file: DataFile, partition_ids: Sequence[int], wanted: Iterable[int]) -> dict[int, Any]:
    """The values that all rows of a file have in metadata columns, by field id.

    Args:
        file: the data file.
        partition_ids: the ids of its spec's partition fields.
        wanted: the field ids of a filter that are about files as wholes.
    """
    known: Mapping[int, Any] = {
        FILE.field_id: file.file_path,
        SPEC_ID.field_id: file.spec_id,
        DELETED.field_id: False,
        **{_PARTITION_FIELDS + each: value for each, value in zip(partition_ids, file.partition, strict=True)},
    }
    return {field_id: known.get(field_id) for field_id in wanted}


def is_of_file(predicate: BoundPredicate) -> bool:
    """Whether a test has one answer for all rows of a file."""
    return predicate.ref.path[0].field_id in _OF_FILE


def is_of_table(predicate: BoundPredicate) -> bool:
    """Whether a test is of a column of the table, not of a metadata column.

    Only these may be decided by metrics: files may hold row ids for some of their rows, and then have bounds of them.
    """
    return not is_metadata_column(predicate.ref.path[0].field_id)


def only_tests(expression: BooleanExpression, kept: Callable[[BoundPredicate], bool]) -> BooleanExpression:
    """A filter that takes some tests to match.

    Args:
        expression: the filter, bound.
        kept: which tests are still made.
    """
    return fold(expression, _OnlyTests(kept))


class _Names(ExpressionVisitor[frozenset[str]]):
    """The columns that an expression names; a bound one needs no names any more."""

    def visit_true(self) -> frozenset[str]:
        return frozenset()

    def visit_false(self) -> frozenset[str]:
        return frozenset()

    def visit_not(self, child: frozenset[str]) -> frozenset[str]:
        return child

    def visit_and(self, operands: Sequence[frozenset[str]]) -> frozenset[str]:
        return frozenset().union(*operands)

    def visit_or(self, operands: Sequence[frozenset[str]]) -> frozenset[str]:
        return frozenset().union(*operands)

    def visit_unbound(self, predicate: UnboundPredicate) -> frozenset[str]:
        term = predicate.term
        return frozenset([term.name if isinstance(term, Reference) else term.reference.name])

    def visit_bound(self, predicate: BoundPredicate) -> frozenset[str]:
        return frozenset()


class _OnlyTests(RebuildingVisitor):
    def __init__(self, kept: Callable[[BoundPredicate], bool]) -> None:
        self._kept = kept

    def visit_bound(self, predicate: BoundPredicate) -> BooleanExpression:
        return predicate if self._kept(predicate) else AlwaysTrue()
