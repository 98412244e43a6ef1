"""Upsert: rows that replace those of the same key, or are inserted, as a join on columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.casting import SchemaFit
from hms_iceberg.arrow.columns.nested import combine
from hms_iceberg.arrow.reading.row_rewrites import AffectedRows, positions_of
from hms_iceberg.arrow.reading.task_reader import read_task
from hms_iceberg.arrow.rows.row_identity import differs, key_frame
from hms_iceberg.arrow.writing.given_rows import ArrowInput, batches_of
from hms_iceberg.errors import InvalidInputError, SchemaMismatchError
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.json_model import column_names
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.changes.key_columns import KEY_BATCH_ROWS, key_columns, key_of, keys_filter
from hms_iceberg.table.changes.row_change import ChangeOptions, RowChange, rows_in
from hms_iceberg.transaction.transaction import Transaction


@dataclass(frozen=True)
class UpsertResult:
    """The result of an upsert.

    Attributes:
        rows_updated: rows of the table that were matched and changed.
        rows_inserted: rows that had no match.
    """

    rows_updated: int = 0
    rows_inserted: int = 0


def upsert_rows(
    transaction: Transaction,
    rows: ArrowInput,
    join_columns: Sequence[str] | None,
    update_matched: bool,
    insert_others: bool,
    options: ChangeOptions,
) -> UpsertResult:
    if not update_matched and not insert_others:
        raise InvalidInputError(
            f"Cannot upsert into table {'.'.join(transaction.identifier)}: it would neither update nor insert. Leave "
            "when_matched_update_all or when_not_matched_insert_all true."
        )
    change = RowChange(transaction, "merge", options)
    source = _UpsertRows(change, rows, join_columns)
    if not source.rows.num_rows:
        return UpsertResult()
    scanned = source.filter()
    matched = source.matches(list(change.plan(scanned).tasks()))
    if update_matched:
        source.refuse_shared_keys(matched)
    changed = source.changed(matched) if update_matched else []
    inserted = source.unmatched(matched) if insert_others else None
    count = inserted.num_rows if inserted is not None else 0
    if changed or count:
        change.commit(changed, scanned, replacement=source.replacement, inserted=inserted)
    else:
        change.commit_nothing(scanned)
    return UpsertResult(rows_in(changed), count)


class _UpsertRows:
    """The rows of an upsert, in memory: fitted to the table, and by key; no key twice."""

    def __init__(self, change: RowChange, rows: ArrowInput, join_columns: Sequence[str] | None) -> None:
        self._change = change
        schema = change.metadata.schema()
        self._keys = key_columns(change, _key_names(schema, join_columns, change), "join_cols")
        batches, incoming = batches_of(rows)
        missing = [key.path[0] for key in self._keys if key.path[0] not in incoming.names]
        if missing:
            raise SchemaMismatchError(
                f"Cannot upsert into table {change.table}: the rows lack the key column "
                f"{', '.join(map(repr, missing))}; they have {', '.join(incoming.names)}."
            )
        fit = SchemaFit(incoming, schema, change.table)
        self.rows = pa.Table.from_batches([fit.fit(batch) for batch in batches], fit.schema).combine_chunks()
        key_ids = {key.field.field_id for key in self._keys}
        self._updated = [
            (place, field)
            for place, field in enumerate(schema.fields)
            if field.name in incoming.names and field.field_id not in key_ids
        ]
        self._frame = self._by_key()

    def _by_key(self) -> pl.DataFrame:
        frame = key_frame(key.values(self.rows) for key in self._keys)
        twice = frame.is_duplicated()
        if twice.any():
            first = twice.arg_max() or 0
            key = self._key_at(first)
            raise InvalidInputError(
                f"Cannot upsert into table {self._change.table}: {int(twice.sum()):,} of the rows share their key with "
                f"another, the first is {key}. Which of them should win cannot be told: keep one row for each key."
            )
        return frame.with_row_index("source")

    def _key_at(self, row: int) -> dict[str, Any]:
        """The key of a row, for messages."""
        return key_of(self._keys, self.rows, row)

    def filter(self) -> BooleanExpression:
        """A filter for the rows of the table that may have one of the keys."""
        return keys_filter(self._keys, [key.values(self.rows) for key in self._keys])

    # -------------------------------------------------------------------------------------------- matching

    def matches(self, tasks: Sequence[FileScanTask]) -> list[AffectedRows]:
        """The live rows of the table with one of the keys, each with the new row of the same key."""
        rewriter = self._change.rewriter
        schema = self._change.metadata.schema()
        keys = schema.select_ids([key.field.field_id for key in self._keys])
        context = rewriter.context(keys, KEY_BATCH_ROWS)
        names = [field.name for field in keys.fields]

        def find(task: FileScanTask) -> AffectedRows:
            positions, sources = [], []
            for batch in read_task(context, task):
                frame = key_frame(key.values(batch, names) for key in self._keys).with_row_index("row")
                found = frame.join(self._frame, on=self._names, how="inner", nulls_equal=True).sort("row")
                if found.height:
                    positions.append(positions_of(batch)[found["row"].to_numpy()])
                    sources.append(found["source"].to_numpy())
            if not positions:
                return AffectedRows(task, np.empty(0, np.int64), np.empty(0, np.uint32))
            return AffectedRows(task, np.concatenate(positions), np.concatenate(sources))

        return [each for each in rewriter.map(find, tasks) if len(each.positions)]

    def refuse_shared_keys(self, matched: Sequence[AffectedRows]) -> None:
        """Refuses if several rows of the table have the key of one row here."""
        sources = np.concatenate([each.sources for each in matched]) if matched else np.empty(0, np.int64)
        found, counts = np.unique(sources, return_counts=True)
        if (counts > 1).any():
            first = int(found[counts.argmax()])
            key = self._key_at(first)
            raise InvalidInputError(
                f"Cannot upsert into table {self._change.table}: {counts.max()} of its rows have the key {key}. Delete "
                "all of them but one first, choose join_cols that identify a row, or pass "
                "when_matched_update_all=False."
            )

    @property
    def _names(self) -> list[str]:
        return [f"k{place}" for place in range(len(self._keys))]

    def changed(self, matched: Sequence[AffectedRows]) -> list[AffectedRows]:
        """The matched rows that differ from the new row of the same key."""
        if not self._updated:
            return []
        rewriter = self._change.rewriter
        columns = Schema(*(field for _, field in self._updated))
        context = rewriter.context(columns)

        def compare(each: AffectedRows) -> AffectedRows:
            assert each.sources is not None
            keep = np.zeros(len(each.positions), np.bool_)
            for batch, first, inside in rewriter.batches(context, each):
                if len(inside):
                    which = slice(first, first + len(inside))
                    keep[which] = self._differ(batch.take(pa.array(inside)), each.sources[which])
            return AffectedRows(each.task, each.positions[keep], each.sources[keep])

        by_task = {each.task: each for each in matched}
        found = rewriter.map(lambda task: compare(by_task[task]), list(by_task))
        return [each for each in found if len(each.positions)]

    def _differ(self, rows: pa.RecordBatch, sources: Any) -> Any:
        result = np.zeros(rows.num_rows, np.bool_)
        chosen = pa.array(sources)
        for column, (_, field) in zip(rows.columns, self._updated, strict=True):
            result |= differs(column, combine(self.rows.column(field.name).take(chosen)))
        return result

    def replacement(self, affected: AffectedRows, rows: pa.RecordBatch, which: slice) -> Mapping[int, pa.Array]:
        """The new values of changed rows; a `row_rewrites.Replacement`."""
        assert affected.sources is not None
        chosen = pa.array(affected.sources[which])
        return {place: combine(self.rows.column(place).take(chosen)) for place, _ in self._updated}

    def unmatched(self, matched: Sequence[AffectedRows]) -> pa.Table:
        new = np.ones(self.rows.num_rows, np.bool_)
        for each in matched:
            new[each.sources] = False
        return self.rows.filter(pa.array(new))


def _key_names(schema: Schema, join_columns: Sequence[str] | None, change: RowChange) -> Sequence[str]:
    names: Sequence[str] = sorted(schema.identifier_field_names())
    if join_columns is not None:
        names = column_names(join_columns, f"Cannot upsert into table {change.table}: join_cols")
    if not names:
        raise InvalidInputError(
            f"Cannot upsert into table {change.table}: it has no identifier fields, and join_cols names no columns. "
            "Pass join_cols, a list of column names, or set the table's identifier fields (update_schema)."
        )
    return names
