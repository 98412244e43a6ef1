"""Pruning by what is the same for many rows: partition summaries of manifests, and metadata columns of files.

`_file`, `_spec_id` and `_partition` are the same for all rows of a file; `_pos`, `_row_id` and
`_last_updated_sequence_number` differ by row, and are for the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hms_iceberg.expressions.bound import BoundPredicate, BoundReference
from hms_iceberg.expressions.terms import Reference
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression, UnboundPredicate
from hms_iceberg.expressions.visitors import ExpressionVisitor, RebuildingVisitor, bound_predicates, fold
from hms_iceberg.lazy import pl
from hms_iceberg.scan.metrics_filter import rows_may_match
from hms_iceberg.scan.partition_columns import PartitionColumns, decode_bounds, partition_predicate, polars_dtype
from hms_iceberg.spec.data_types import DoubleType, FloatType, NestedField, StructType, UnknownType, UUIDType
from hms_iceberg.spec.manifests.manifest_values import DataFile, FieldSummary, ManifestFile
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


def keep_manifests(
    manifests: Iterable[ManifestFile], projection: Callable[[int], BooleanExpression], partitions: PartitionColumns
) -> list[ManifestFile]:
    """The manifests that may hold a live file whose partition matches, in their order; `projection` leads from a spec
    id to the predicate, bound to the spec's partition type."""
    live = [manifest for manifest in manifests if manifest.has_live_files()]
    kept: set[int] = set()
    for spec_id in {manifest.partition_spec_id for manifest in live}:
        partitions.columns(spec_id)
        places = [place for place, manifest in enumerate(live) if manifest.partition_spec_id == spec_id]
        answers = manifests_may_match(
            projection(spec_id), partitions.structs[spec_id], [live[place] for place in places]
        )
        kept.update(place for place, answer in zip(places, answers, strict=True) if answer)
    return [manifest for place, manifest in enumerate(live) if place in kept]


def manifests_may_match(
    predicate: BooleanExpression, partition_type: StructType, manifests: Sequence[ManifestFile]
) -> list[bool]:
    """For each manifest of one spec, False only if certainly none of its partitions matches."""
    if isinstance(predicate, AlwaysTrue):
        return [True] * len(manifests)
    return rows_may_match(predicate, _PartitionSummaries(partition_type, manifests)).to_list()


class _PartitionSummaries:
    """Summaries of partition values in manifest lists: without bounds all are null or NaN. UUIDs' bounds are not used,
    as Java orders UUIDs as two signed numbers; of a dropped column nothing is known."""

    def __init__(self, partition_type: StructType, manifests: Sequence[ManifestFile]) -> None:
        self._manifests = manifests
        self._places = {field.field_id: place for place, field in enumerate(partition_type.fields)}

    def __len__(self) -> int:
        return len(self._manifests)

    def lower(self, ref: BoundReference) -> pl.Series:
        return self._bound(ref, 0)

    def upper(self, ref: BoundReference) -> pl.Series:
        return self._bound(ref, 1)

    def bounds(self, ref: BoundReference) -> tuple[pl.Series, pl.Series]:
        return self.lower(ref), self.upper(ref)

    def stored_bounds(self, field_id: int) -> tuple[pl.Series, pl.Series]:
        summaries = self._of(field_id)
        lower = [None if each is None else each.lower_bound for each in summaries]
        upper = [None if each is None else each.upper_bound for each in summaries]
        return pl.Series(lower, dtype=pl.Binary), pl.Series(upper, dtype=pl.Binary)

    def may_be_null(self, ref: BoundReference) -> pl.Series:
        return self._where(ref, lambda each: each.contains_null)

    def may_be_value(self, ref: BoundReference) -> pl.Series:
        return self._where(ref, lambda each: not each.contains_null or _has_bounds(each) or _has_nan(ref, each))

    def may_be_nan(self, ref: BoundReference) -> pl.Series:
        return self._where(ref, lambda each: _has_nan(ref, each))

    def may_not_be_nan(self, ref: BoundReference) -> pl.Series:
        """Where some partition may be null, or a value other than NaN."""
        return self._where(ref, lambda each: each.contains_null or not _only_nan(ref, each))

    def may_be_number(self, ref: BoundReference) -> pl.Series:
        """Where some partition may be neither null nor NaN."""
        return self._where(ref, lambda each: not _only_nan(ref, each)) & self.may_be_value(ref)

    def _where(self, ref: BoundReference, test: Callable[[FieldSummary], bool]) -> pl.Series:
        is_known = not isinstance(ref.type, UnknownType)
        answers = [each is None or not is_known or test(each) for each in self._of(ref.field_id)]
        return pl.Series(answers, dtype=pl.Boolean)

    def _bound(self, ref: BoundReference, side: int) -> pl.Series:
        stored = self.stored_bounds(ref.field_id)[side]
        return decode_bounds(stored.clear(len(stored)) if isinstance(ref.type, UUIDType) else stored, ref.type)

    def _of(self, field_id: int) -> list[FieldSummary | None]:
        """The summary of a field in each manifest; None if the writer left it, or all of them, out."""
        place, count = self._places[field_id], len(self._places)
        summaries = (manifest.partitions for manifest in self._manifests)
        return [None if each is None or len(each) != count else each[place] for each in summaries]


def _has_bounds(summary: FieldSummary) -> bool:
    return summary.lower_bound is not None or summary.upper_bound is not None


def _has_nan(ref: BoundReference, summary: FieldSummary) -> bool:
    """Whether there may be NaN: where the writer did not say, too."""
    return isinstance(ref.type, FloatType | DoubleType) and summary.contains_nan is not False


def _only_nan(ref: BoundReference, summary: FieldSummary) -> bool:
    """Whether all that is not null is certainly NaN."""
    return isinstance(ref.type, FloatType | DoubleType) and summary.contains_nan is True and not _has_bounds(summary)


# In a filter the fields of `_partition` have ids of their own: a table's columns may have those of partition fields.
_PARTITION_FIELDS = 2_100_000_000
_OF_FILE = frozenset((FILE.field_id, SPEC_ID.field_id, DELETED.field_id, PARTITION_ID))


def filter_schema(metadata: TableMetadata, schema: Schema, expression: BooleanExpression) -> Schema:
    """The columns that a filter may name: those of a schema, which come first, and the metadata columns that it does
    name."""
    return with_metadata_columns(metadata, schema, {name.split(".")[0] for name in fold(expression, _Names())})


def with_metadata_columns(metadata: TableMetadata, schema: Schema, names: Iterable[str] = METADATA_COLUMNS) -> Schema:
    """A schema, whose columns come first, and some metadata columns with the ids that they have in filters; other names
    are left out."""
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
    """The part of a filter that is about files as wholes."""

    def __init__(self, expression: BooleanExpression, partitions: PartitionColumns) -> None:
        self._partitions = partitions
        self._types = {each.ref.field_id: each.ref.type for each in bound_predicates(expression) if is_of_file(each)}
        self._filter = only_tests(expression, is_of_file)

    @property
    def has_tests(self) -> bool:
        """Whether the filter tests any column that is the same for all rows of a file."""
        return bool(self._types)

    def mask(self, spec_id: int, files: pl.DataFrame) -> pl.Series | None:
        """Finds which files of a spec may hold a row that matches, by what all rows of a file have in common; None if
        all may."""
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
    """The values that all rows of a file have in metadata columns, by field id."""
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
    """Whether a test is of a column of the table, not of a metadata column. Only these may be decided by metrics: files
    may hold row ids for some of their rows, and then have bounds of them."""
    return not is_metadata_column(predicate.ref.path[0].field_id)


def only_tests(expression: BooleanExpression, kept: Callable[[BoundPredicate], bool]) -> BooleanExpression:
    """A filter that takes some tests to match."""
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
