"""The rows that snapshots inserted and deleted, as record batches with what happened to them.

A snapshot that only inserts, or only deletes, is streamed. One that does both is held in memory while rows that it
merely carried over to other files are taken out and pairs of one key are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.nested import combine, conform, pruned
from hms_iceberg.arrow.parallel import default_workers, read_in_order
from hms_iceberg.arrow.reading.scan_context import ScanContext
from hms_iceberg.arrow.reading.task_reader import read_task
from hms_iceberg.arrow.rows.row_identity import key_frame, net_changes, unmatched
from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.lazy import pl
from hms_iceberg.scan.changelog import ChangelogScanTask, ChangeType, SnapshotChanges
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import CHANGE_ORDINAL, CHANGELOG_COLUMNS, COMMIT_SNAPSHOT_ID, ROW_ID
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_BATCH_ROWS = 131_072
_BUFFER_BYTES = 128 * 1024 * 1024
_NUMBERS = (CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)


@dataclass(frozen=True)
class ChangelogOptions:
    """How inserted and deleted rows become changes: by `identity` columns, paired to updates by `key` (empty for none),
    `net` over all snapshots, with or without `carryovers` (rows that were only copied)."""

    identity: Schema
    key: tuple[NestedField, ...] = ()
    net: bool = False
    carryovers: bool = False


def changelog_schema(projected: Schema) -> Schema:
    """The columns of a changelog: some of the table's, then type, ordinal and snapshot of the change."""
    return Schema(*projected.fields, *CHANGELOG_COLUMNS, schema_id=projected.schema_id)


def changelog_batches(
    changes: Iterable[SnapshotChanges],
    filter_schema: Schema,
    projected: Schema,
    metadata: TableMetadata,
    storage: Storage,
    options: ChangelogOptions,
) -> Iterator[pa.RecordBatch]:
    """The changed rows, oldest snapshot first; of a snapshot deleted rows first, then updated, then inserted ones.
    Batches have the schema `to_arrow(changelog_schema(projected))`; none is empty."""
    yield from _Changelog(filter_schema, projected, metadata, storage, options).batches(changes)


class _Changelog:
    def __init__(
        self,
        filter_schema: Schema,
        projected: Schema,
        metadata: TableMetadata,
        storage: Storage,
        options: ChangelogOptions,
    ) -> None:
        self._filter_schema = filter_schema
        self._projected = projected
        self._metadata = metadata
        self._storage = storage
        self._options = options
        self._schema = to_arrow(changelog_schema(projected))
        self._full = _with(options.identity, (*projected.fields, *options.key))
        self._local = parse_location(metadata.location).is_local

    def batches(self, changes: Iterable[SnapshotChanges]) -> Iterator[pa.RecordBatch]:
        if self._options.net:
            yield from self._net(changes)
            return
        for each in changes:
            deletes, inserts = list(each.deletes()), list(each.inserts())
            if self._options.carryovers or not deletes or not inserts:
                for tasks in (deletes, inserts):
                    for batch in self._read(tasks, self._projected):
                        yield self._result(tasks[0].change_type, self._projected, _numbered(batch, each))
            else:
                yield from self._emit(*self._without_carryovers(each, deletes, inserts))

    def _net(self, changes: Iterable[SnapshotChanges]) -> Iterator[pa.RecordBatch]:
        parts = []
        signs = []
        for each in changes:
            for sign, rows in zip((-1, 1), self._without_carryovers(each, each.deletes(), each.inserts()), strict=True):
                parts.append(rows)
                signs.append(np.full(rows.num_rows, sign))
        if not parts:
            return
        rows, came = pa.concat_tables(parts), np.concatenate(signs)
        kept = net_changes(self._identity(rows), came)
        yield from self._emit(rows.filter(pa.array(kept & (came < 0))), rows.filter(pa.array(kept & (came > 0))))

    def _without_carryovers(
        self, changes: SnapshotChanges, deletes: Iterable[ChangelogScanTask], inserts: Iterable[ChangelogScanTask]
    ) -> tuple[pa.Table, pa.Table]:
        tables = []
        for tasks in (deletes, inserts):
            batches = [_numbered(batch, changes) for batch in self._read(list(tasks), self._full)]
            tables.append(pa.Table.from_batches(batches, to_arrow(_with(self._full, _NUMBERS))))
        left, right = tables
        if self._options.carryovers:
            return left, right
        masks = unmatched(self._identity(left), self._identity(right))
        return left.filter(pa.array(masks[0])), right.filter(pa.array(masks[1]))

    def _identity(self, rows: pa.Table) -> pa.Table:
        return rows.select(range(len(self._options.identity.fields)))

    def _read(self, tasks: Sequence[ChangelogScanTask], schema: Schema) -> Iterator[pa.RecordBatch]:
        context = ScanContext(self._metadata, self._storage, self._filter_schema, schema, _BATCH_ROWS)
        workers = default_workers(len(tasks), not self._local)
        return read_in_order(tasks, lambda each: read_task(context, each.task, each.deleted_by), workers, _BUFFER_BYTES)

    def _emit(self, deletes: pa.Table, inserts: pa.Table) -> Iterator[pa.RecordBatch]:
        before, after = self._pairs(deletes, inserts)
        yield from self._rows(ChangeType.DELETE, _without(deletes, before))
        for start in range(0, len(before), _BATCH_ROWS // 2):
            yield self._updates(deletes, before[start:][: _BATCH_ROWS // 2], inserts, after[start:][: _BATCH_ROWS // 2])
        yield from self._rows(ChangeType.INSERT, _without(inserts, after))

    def _pairs(self, deletes: pa.Table, inserts: pa.Table) -> tuple[Any, Any]:
        """Numbers of deleted and inserted rows that are the two sides of an update: a key that was deleted or inserted
        more than once, or a row without its id, is paired with none."""
        nothing = np.empty(0, np.int64)
        if not self._options.key or not deletes.num_rows or not inserts.num_rows:
            return nothing, nothing
        left, right = (self._single_keys(rows) for rows in (deletes, inserts))
        names = [name for name in left.columns if name != "row"]
        pairs = left.join(right, on=names, nulls_equal=True).sort("row")
        return pairs["row"].cast(pl.Int64).to_numpy(), pairs["row_right"].cast(pl.Int64).to_numpy()

    def _single_keys(self, rows: pa.Table) -> pl.DataFrame:
        """The keys that one row alone has, and the row's number."""
        keys = key_frame(self._key_columns(rows))
        numbered = keys.with_row_index("row").filter(pl.len().over(keys.columns) == 1)
        if ROW_ID in self._options.key:
            numbered = numbered.drop_nulls(keys.columns[self._options.key.index(ROW_ID)])
        return numbered

    def _key_columns(self, rows: pa.Table) -> list[pa.Array]:
        columns = []
        for key in self._options.key:
            path = [key.field_id, *self._full.ancestor_ids(key.field_id)][::-1]
            place = [field.field_id for field in self._full.fields].index(path[0])
            array = combine(rows.column(place))
            for below in path[1:]:
                array = pc.struct_field(array, [self._full.find_field(below).name])
            columns.append(array)
        return columns

    def _rows(self, change: ChangeType, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        for batch in rows.to_batches(_BATCH_ROWS):
            if batch.num_rows:
                yield self._result(change, self._full, batch)

    def _updates(self, deletes: pa.Table, before: Any, inserts: pa.Table, after: Any) -> pa.RecordBatch:
        """Each row before its update, and after it."""
        sides = [
            self._result(change, self._full, _chosen(table, places))
            for change, table, places in (
                (ChangeType.UPDATE_BEFORE, deletes, before),
                (ChangeType.UPDATE_AFTER, inserts, after),
            )
        ]
        order = np.arange(2 * len(before)).reshape(2, -1).T.reshape(-1)
        return _as_batch(pa.Table.from_batches(sides).take(pa.array(order)))

    def _result(self, change: ChangeType, schema: Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of a schema and both numbers, as one of the result."""
        kind = pa.repeat(pa.scalar(change.value), batch.num_rows)
        columns = batch.columns
        if schema is not self._projected:
            columns = [*pruned(columns[:-2], schema.fields, self._projected.fields), *columns[-2:]]
        columns.insert(len(columns) - 2, kind)
        arrays = [conform(array, field.type) for array, field in zip(columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _with(schema: Schema, fields: Iterable[NestedField]) -> Schema:
    """The schema, with the given fields added that it lacks."""
    more = {field.field_id: field for field in fields if not schema.has_field(field.field_id)}
    return Schema(*schema.fields, *more.values(), schema_id=schema.schema_id)


def _numbered(batch: pa.RecordBatch, changes: SnapshotChanges) -> pa.RecordBatch:
    """A batch with the number of its change and the id of its snapshot."""
    numbers = [
        pa.repeat(pa.scalar(changes.ordinal, pa.int32()), batch.num_rows),
        pa.repeat(pa.scalar(changes.snapshot.snapshot_id, pa.int64()), batch.num_rows),
    ]
    fields = [*batch.schema, *to_arrow(Schema(*_NUMBERS))]
    return pa.RecordBatch.from_arrays([*batch.columns, *numbers], schema=pa.schema(fields))


def _without(rows: pa.Table, places: Any) -> pa.Table:
    """All rows of a batch but the given ones."""
    if not len(places):
        return rows
    mask = np.ones(rows.num_rows, np.bool_)
    mask[places] = False
    return rows.filter(pa.array(mask))


def _chosen(rows: pa.Table, places: Any) -> pa.RecordBatch:
    """Some rows in the order that is given; the whole table may hold more text than one array can."""
    mask = np.zeros(rows.num_rows, np.bool_)
    mask[places] = True
    return _as_batch(rows.filter(pa.array(mask)).take(pa.array(np.argsort(np.argsort(places)))))


def _as_batch(rows: pa.Table) -> pa.RecordBatch:
    (batch,) = rows.combine_chunks().to_batches()
    return batch
