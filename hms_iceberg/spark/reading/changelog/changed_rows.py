"""Changed rows for Spark: files that the bridge reads as they are, and rows that had to be compared with one another.

Files in which a snapshot only inserted rows, or only deleted them, are read by Spark's tasks. What a snapshot both
deleted and inserted, and rows that deletes took out of files that stayed, are read here and cross as Arrow: they are as
many as the snapshot touched, not as many as the table has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.reading.changelog_rows import changelog_schema
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.bound import BoundVariantGet
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.expressions.visitors import bound_predicates
from hms_iceberg.scan.changelog import ChangeType, SnapshotChanges
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.nanoseconds import chosen, shown
from hms_iceberg.spark.reading.arrow_parts import PART_BYTES, encoded_parts, written
from hms_iceberg.spark.reading.conditions import row_filter
from hms_iceberg.spark.reading.plan_answer import AnswerForm, plan_answer
from hms_iceberg.spark.reading.worker_files import for_spark, split
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.metadata_columns import CHANGELOG_COLUMNS
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.table.reading.incremental_scans import ChangelogScan

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ChangeColumns:
    """The columns that tell what happened to a row, after those of the table."""

    fields: tuple[NestedField, ...]
    # for one kind of change of one snapshot, by its ordinal
    values: Callable[[ChangeType, int, Snapshot], tuple[Any, ...]]
    # the same for rows of a batch that has the columns of a changelog
    of_rows: Callable[[Mapping[str, pa.Array]], tuple[pa.Array, ...]]

    def schema(self, projected: Schema) -> Schema:
        """The columns of the table that are read, then those of the change."""
        return Schema(*projected.fields, *self.fields, schema_id=projected.schema_id)


OF_ICEBERG = ChangeColumns(
    CHANGELOG_COLUMNS,
    lambda change, ordinal, snapshot: (change.value, ordinal, snapshot.snapshot_id),
    lambda columns: tuple(columns[each.name] for each in CHANGELOG_COLUMNS),
)


@dataclass(frozen=True)
class WantedChanges:
    """The part of a changelog that is read."""

    scan: ChangelogScan
    columns: ChangeColumns  # those that tell of changes
    names: Sequence[str]  # the columns that the query uses, in order
    # what rows of the table are tested by afterwards, as the bridge's class FilterText wrote it
    condition: Mapping[str, Any] | None
    table: str
    snapshot_ids: frozenset[int] | None = None  # those of the scan that are wanted; None for all
    lacking_types: tuple[str, ...] = field(default=())  # the names of Iceberg's types that this Spark does not have

    def answer(self) -> bytes:
        """The answer for the bridge's class ChangesScan: `plans` of files, then parts of Arrow in a file."""
        scan = self._filtered()
        found = [each for each in scan.plan() if self._is_wanted(each)]
        if scan.net_changes and all(next(each.deletes(), None) is None for each in found):
            scan = replace(scan, net_changes=False)  # nothing that came can have gone
        plans: list[bytes] = []
        rest: list[SnapshotChanges] = []
        for changes in found:
            rest.append(changes if scan.combines(changes) else self._without_files(changes, plans))
        return AnswerWriter({"plans": len(plans), **self._arrow(scan, rest)}).blobs(plans).done()

    def _is_wanted(self, changes: SnapshotChanges) -> bool:
        return self.snapshot_ids is None or changes.snapshot.snapshot_id in self.snapshot_ids

    def _filtered(self) -> ChangelogScan:
        own = {each.name for each in self.columns.fields}
        scan = self.scan.select(*(name for name in self.names if name not in own))
        return replace(scan, row_filter=self._filter(scan.table_schema))

    def _filter(self, schema: Schema) -> BooleanExpression:
        wanted, _ = row_filter(self.condition, schema, chosen(self.lacking_types))
        try:
            bound = bind(schema, wanted)
        except InvalidInputError:  # Spark compares what Iceberg will not
            return AlwaysTrue()
        # Spark's casts of values within variants go by its time zone.
        is_exact = not any(isinstance(each.term, BoundVariantGet) for each in bound_predicates(bound))
        return wanted if is_exact else AlwaysTrue()

    def _without_files(self, changes: SnapshotChanges, plans: list[bytes]) -> SnapshotChanges:
        """Adds the files that tasks read to the plans, and leaves the others."""
        sides = {ChangeType.DELETE: changes.removed, ChangeType.INSERT: changes.added}
        others: dict[ChangeType, ScanPlan | None] = {}
        for change, plan in sides.items():
            if plan is None or not plan.files.height:
                others[change] = plan
                continue
            in_tasks, in_python = split(plan, self.lacking_types)
            others[change] = in_python or plan.subset(plan.files["file_path"].is_null())
            values = self.columns.values(change, changes.ordinal, changes.snapshot)
            constants = tuple(zip(self.columns.fields, values, strict=True))
            if in_tasks.files.height:
                plans.append(plan_answer(in_tasks, self.table, AnswerForm(self.lacking_types, constants=constants)))
        added = others[ChangeType.INSERT]
        assert added is not None
        return replace(changes, removed=others[ChangeType.DELETE], added=added)

    def _arrow(self, scan: ChangelogScan, changes: Sequence[SnapshotChanges]) -> dict[str, Any]:
        batches = scan.rows_of(changes)
        if not self.names:
            rows = sum(batch.num_rows for batch in batches)
            return {"path": None, "parts": [[0, rows]] if rows else []}
        return written(encoded_parts(batch) for batch in self._in_spark(scan.projection(), batches))

    def _in_spark(self, projected: Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = self.columns.schema(projected)
        wanted = Schema(*(known.find_field(name) for name in self.names))
        told = shown(wanted, chosen(self.lacking_types))
        names = [each.name for each in changelog_schema(projected).fields]
        for batch in _together(batches):
            columns = dict(zip(names, batch.columns, strict=True))
            of_change = zip(self.columns.fields, self.columns.of_rows(columns), strict=True)
            columns |= {each.name: values for each, values in of_change}
            yield for_spark(_record_batch([columns[name] for name in self.names], self.names), told)


def _together(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small batches put together: many snapshots may have changed a row each."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= PART_BYTES:
            yield from _combined(held)
            held, size = [], 0
    yield from _combined(held)


def _combined(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if len(batches) == 1:
        yield from batches
    elif batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def _record_batch(columns: list[Any], names: Sequence[str]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(columns, names=list(names))
