"""Which rows a predicate means, in files of every age: by the columns that its names stand for, and stood for.

Source: Iceberg specification, "Column Projection", "Schema Evolution" (columns are their ids).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.reading.row_rewrites import RowRewriter, positions_of
from hms_iceberg.arrow.reading.task_reader import ScanContext, read_task
from hms_iceberg.arrow.rows.row_masks import matching_rows
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import InvalidInputError, TypeMismatchError, UnknownColumnError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.bound import BoundReference
from hms_iceberg.expressions.residuals import residual_evaluator
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, BooleanExpression
from hms_iceberg.expressions.visitors import referenced_field_ids
from hms_iceberg.scan.metrics_filter import files_may_match
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.data_types import NestedField, StructType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_BATCH_ROWS = 131_072


@dataclass(frozen=True)
class Reading:
    """A predicate as one schema of the table reads its names."""

    schema: Schema
    predicate: BooleanExpression
    case_sensitive: bool = True

    @cached_property
    def bound(self) -> BooleanExpression:
        return bind(self.schema, self.predicate, self.case_sensitive)

    @cached_property
    def field_ids(self) -> frozenset[int]:
        """The columns that the predicate reads."""
        return frozenset(referenced_field_ids(self.bound))


def readings_of(
    metadata: TableMetadata, predicate: BooleanExpression, name: str, case_sensitive: bool = True
) -> tuple[Reading, ...]:
    """The readings of a predicate that together say which rows it means: by the newest schema that has all its names,
    and by others in which a name stands for a column dropped since. UnknownColumnError if no schema has them all."""
    current = metadata.schema()
    older = sorted(metadata.schemas, key=lambda each: each.schema_id, reverse=True)
    found: list[Reading] = []
    error: UnknownColumnError | None = None
    for schema in (current, *(each for each in older if each.schema_id != current.schema_id)):
        reading = Reading(schema, predicate, case_sensitive)
        try:
            ids = reading.field_ids
        except UnknownColumnError as problem:
            error = error or problem
            continue
        except TypeMismatchError:
            if not found:
                raise
            continue
        if schema is not current:
            reading = Reading(_as_named(metadata, schema, ids), predicate, case_sensitive)
        known = {each.field_ids for each in found}
        if not found or (ids not in known and not any(map(current.has_field, ids - found[0].field_ids))):
            found.append(reading)
    if not found:
        raise UnknownColumnError(f"Cannot forget rows of table {name}: no schema of the table has the column. {error}")
    return tuple(found)


def _as_named(metadata: TableMetadata, schema: Schema, field_ids: Iterable[int]) -> Schema:
    """Columns under the names that a schema has for them, of the widest type that they came to have. Those that
    partitions are made of come with them. Files need not have them."""
    sources = {source for spec in metadata.partition_specs for each in spec.fields for source in each.source_ids or ()}
    sources |= {each.source_id for spec in metadata.partition_specs for each in spec.fields}
    wanted = {*field_ids, *filter(schema.has_field, sources)}
    tops = {each.field_id for each in schema.select_ids(wanted).fields}
    names = {field_id: each.name for field_id, each in schema.index_by_id.items()}
    newest: dict[int, NestedField] = {}
    for each in (*sorted(metadata.schemas, key=lambda each: each.schema_id), metadata.schema()):
        newest.update((column.field_id, column) for column in each.fields if column.field_id in tops)
    return Schema(*(_renamed(newest[top], names) for top in sorted(tops))).select_ids(wanted)


def _renamed(column: NestedField, names: Mapping[int, str]) -> NestedField:
    kind = column.field_type
    if isinstance(kind, StructType):
        kind = StructType(*(_renamed(each, names) for each in kind.fields if each.field_id in names))
    return replace(column, name=names[column.field_id], field_type=kind, required=False)


def refuse_unreadable(reading: Reading, name: str) -> None:
    """Refuses a predicate that means every row, which is what dropping the table is for."""
    if isinstance(reading.bound, AlwaysTrue):
        raise InvalidInputError(
            f"Cannot forget rows of table {name}: every row matches the predicate. To forget a whole table, drop it "
            "with purge."
        )


@dataclass(frozen=True)
class FoundRows:
    """Rows of one file: their ascending positions, and how many rows the file has."""

    positions: Any
    of: int

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the file."""
        return len(self.positions) == self.of

    def shifted(self, positions: Any) -> Any:
        """Where rows at some positions are once these rows are gone; those among these are left out."""
        kept = positions[~np.isin(positions, self.positions)]
        return kept - np.searchsorted(self.positions, kept)


@dataclass(frozen=True)
class RowFinder:
    """Finds the rows that a predicate means, whether deletes hide them or not."""

    metadata: TableMetadata
    storage: Storage
    readings: tuple[Reading, ...]
    trusts_statistics: bool = True  # and partitions, where they tell that no row of a file matches
    _contexts: dict[int, ScanContext] = field(default_factory=dict, compare=False, repr=False)

    def found(self, file: DataFile, sequence_number: int) -> FoundRows:
        """The rows of a data file that match."""
        if not self.trusts_statistics:
            return self.read(file, sequence_number)
        parts = [np.empty(0, np.int64)]
        for reading in self.readings:
            residual = self.residual(reading, file)
            if isinstance(residual, AlwaysTrue):
                return FoundRows(np.arange(file.record_count), file.record_count)
            if not isinstance(residual, AlwaysFalse) and files_may_match(residual, [file])[0]:
                task = FileScanTask.of(file, (), residual, sequence_number)
                parts += map(positions_of, read_task(self._context(reading), task))
        return FoundRows(np.unique(np.concatenate(parts)), file.record_count)

    def may_hold(self, file: DataFile) -> bool:
        """Whether a file that cannot be read may have held a row that matches."""
        residuals = [self.residual(reading, file) for reading in self.readings]
        return any(not isinstance(each, AlwaysFalse) and files_may_match(each, [file])[0] for each in residuals)

    def matches_partition(self, file: DataFile) -> bool:
        """Whether every row of the file's partition matches."""
        return any(isinstance(self.residual(reading, file), AlwaysTrue) for reading in self.readings)

    def residual(self, reading: Reading, file: DataFile) -> BooleanExpression:
        """The bound predicate that is left to test on the rows of a file, given its partition."""
        spec = self.metadata.spec_by_id(file.spec_id)
        sources = {source for each in spec.fields for source in (each.source_ids or (each.source_id,))}
        if not all(reading.schema.has_field(source) for source in sources):
            return reading.bound
        return residual_evaluator(spec, reading.predicate, reading.schema, reading.case_sensitive)(file.partition)

    def read(self, file: DataFile, sequence_number: int) -> FoundRows:
        """The rows of a file that match, by every value of the columns: no partition and no statistics are believed."""
        parts = [np.empty(0, np.int64)]
        for reading in self.readings:
            columns = reading.schema.select_ids(reading.field_ids)
            context = RowRewriter(self.metadata, self.storage, reading.schema).context(columns, _BATCH_ROWS)
            for batch in read_task(context, FileScanTask.of(file, (), AlwaysTrue(), sequence_number)):
                found = matching_rows(reading.bound, partial(_value, batch, columns), batch.num_rows)
                parts.append(positions_of(batch)[found.to_numpy(zero_copy_only=False)])
        return FoundRows(np.unique(np.concatenate(parts)), file.record_count)

    def _context(self, reading: Reading) -> ScanContext:
        key = self.readings.index(reading)
        if key not in self._contexts:
            rewriter = RowRewriter(self.metadata, self.storage, reading.schema)
            self._contexts[key] = rewriter.context(Schema(), _BATCH_ROWS)
        return self._contexts[key]


def _value(batch: pa.RecordBatch, columns: Schema, ref: BoundReference) -> pa.Array:
    """The values of a field in a batch of the columns around such fields."""
    place = [each.field_id for each in columns.fields].index(ref.path[0].field_id)
    values = _stored(batch.column(place))
    for name in ref.names[1:]:
        values = _stored(pc.struct_field(values, name))
    return values


def _stored(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def batches_without(batches: Iterator[pa.RecordBatch], gone: FoundRows) -> Iterator[pa.RecordBatch]:
    """Batches whose last column is the position, without some rows and without that column."""
    for batch in batches:
        keep = ~np.isin(positions_of(batch), gone.positions)
        kept = batch.select(range(batch.num_columns - 1))
        if keep.all():
            yield kept
        elif keep.any():
            yield kept.filter(pa.array(keep))
