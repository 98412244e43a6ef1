"""Applying the events of a change stream to a table: the newest event of each key becomes its row, or deletes it.

The rows of the table stay where they are: only key columns are read, of files that may have one of the keys. Old
versions of rows are deleted by position, or their files copied without them, and new ones are written, in one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.nested import combine, conform
from hms_iceberg.arrow.reading.row_rewrites import AffectedRows
from hms_iceberg.arrow.rows.row_identity import key_frame
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import ROW_ID
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.table_properties import COPY_ON_WRITE, MERGE_ON_READ, WRITE_MODES
from hms_iceberg.table.change_events.events import ChangeEvents, newest
from hms_iceberg.table.change_events.schema_growth import grow
from hms_iceberg.table.change_events.stored_rows import StoredRowFinder, StoredRows
from hms_iceberg.table.changes.key_columns import KeyColumn, key_columns, keys_filter
from hms_iceberg.table.changes.row_change import BY_COST, ChangeOptions, RowChange
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.applied_offsets import (
    OFFSETS,
    ApplyOffsets,
    SourceReader,
    applied_offsets,
    as_text,
    is_applied,
)
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.append import FastAppend

ACTION = "apply changes to"


@dataclass(frozen=True)
class AppliedChanges:
    """The outcome of a call for its events. Spark does not count rows: these counts are None then.

    Attributes:
        events: how many events there were.
        rows_inserted: keys that the table did not have, and has now.
        rows_updated: keys that it had, and has a new row of.
        rows_deleted: rows that are gone: of deleted keys, and all but one of updated keys that had several.
        events_superseded: events that a newer one of the same key, in the source or in the table, made void.
        is_repeated: whether the offsets were applied before, so that nothing was done.
        offsets: the reader's offsets of all parts after the call; empty without a name.
    """

    events: int = 0
    rows_inserted: int | None = 0
    rows_updated: int | None = 0
    rows_deleted: int | None = 0
    events_superseded: int = 0
    is_repeated: bool = False
    offsets: Mapping[str, int] = field(default_factory=dict)


def source_reader(
    table: str,
    name: str | None,
    offsets: Mapping[str, int] | None,
    since: Mapping[str, int] | None,
    applied: Callable[[str], Mapping[str, int]],
) -> SourceReader | None:
    """The reader by the arguments of a call, which are checked; None if it has neither name nor offsets. `applied`
    gives the offsets that are applied under a name."""
    refused = f"Cannot apply changes to table {table}"
    if name is None and offsets is None and since is None:
        return None
    if name is None or offsets is None:
        raise InvalidInputError(
            f"{refused}: name and offsets belong together, so that a restart finds the offsets by the name. Give both, "
            "or neither."
        )
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"{refused}: name: expected a text, got {name!r}.")
    for what, given in (("offsets", offsets or None), ("since", since or {})):
        if not isinstance(given, Mapping) or not all(
            isinstance(part, str) and type(offset) is int and offset >= 0 for part, offset in given.items()
        ):
            raise InvalidInputError(
                f"{refused}: {what}: expected the offset of each part, such as {{'topic-0': 123}}, got {given!r}."
            )
    return SourceReader(name, dict(offsets), dict(since or {}), dict(applied(name)))


@dataclass(frozen=True)
class ApplyOptions:
    """How events are applied: reader, mode, whether the schema grows, and the branch."""

    reader: SourceReader | None = None
    mode: str = BY_COST
    evolve: bool = False
    branch: str = MAIN_BRANCH

    def __post_init__(self) -> None:
        if self.mode not in (BY_COST, MERGE_ON_READ, COPY_ON_WRITE):
            raise InvalidInputError(
                f"Cannot apply changes: mode is {self.mode!r}, expected {BY_COST}, {MERGE_ON_READ} or {COPY_ON_WRITE}."
            )
        if not isinstance(self.branch, str) or not self.branch:
            raise InvalidInputError(f"Cannot apply changes: branch: expected its name, got {self.branch!r}.")

    def mode_for(self, metadata: TableMetadata) -> str:
        """The mode in a table: one that is asked for; else the table's own, if it sets one; else by cost, for which
        version 1 leaves no choice."""
        if self.mode != BY_COST:
            return self.mode
        own = WRITE_MODES["merge"]
        if own.name in metadata.properties:
            return own.of(metadata.properties)
        return COPY_ON_WRITE if metadata.format_version < 2 else BY_COST


def apply_events(transaction: Transaction, events: ChangeEvents, options: ApplyOptions) -> AppliedChanges:
    """Applies events to a table as a transaction sees it, and adds the change to the transaction."""
    reader, before = options.reader, dict[str, int]()
    if reader is not None:
        before = applied_offsets(transaction.metadata, reader.name, options.branch)
        if is_applied(reader.offsets, before):
            return AppliedChanges(len(events), is_repeated=True, offsets=before)
        reader.check(before, ".".join(transaction.identifier))
    if options.evolve:
        grow(transaction, events.rows.schema, events.columns.control)
    return _Application(transaction, events, options, before).made()


class _Application:
    """One application of events, on the state of the table that a transaction sees."""

    def __init__(
        self, transaction: Transaction, events: ChangeEvents, options: ApplyOptions, before: Mapping[str, int]
    ) -> None:
        self._transaction = transaction
        self._events = events
        self._reader = options.reader
        self._before = before
        self._after = {**before, **(options.reader.offsets if options.reader else {})}
        properties = {} if options.reader is None else {OFFSETS + options.reader.name: as_text(self._after)}
        self._options = ChangeOptions(properties, branch=options.branch)
        mode = options.mode_for(transaction.metadata)
        self._change = RowChange(
            transaction, "merge", self._options, ACTION, mode=mode, wrap=self._once if options.reader else None
        )
        self._schema = transaction.metadata.schema()

    def _once(self, update: Update) -> Update:
        assert self._reader is not None
        return ApplyOffsets(update, self._reader.name, self._before, self._after, self._options.branch)

    def made(self) -> AppliedChanges:
        """Adds the change to the transaction."""
        if not len(self._events):
            self._move_only()
            return AppliedChanges(offsets=self._after)
        events, change = self._events, self._change
        keys = key_columns(change, events.columns.keys, "keys")
        values = events.key_values(keys)
        own = [self._own_field(name) for name in events.columns.order]
        order = events.order_values(own)
        frame = key_frame(values)
        latest = newest(frame, order)
        deletes = events.deletes[latest]
        upserts = self._rows(latest[~deletes])
        chosen = pa.array(latest)
        latest_keys = [column.take(chosen) for column in values]
        compared = [field for field in own if field is not None]
        if len(compared) < len(own):
            compared, order = [], []
        latest_order = [combine(column.take(chosen)) for column in order]
        finder = StoredRowFinder(change, keys, frame[latest], compared, latest_order)
        return self._write(keys, latest_keys, deletes, upserts, finder)

    def _own_field(self, name: str) -> NestedField | None:
        return self._schema.as_struct().field_by_name(name)

    def _rows(self, places: Any) -> pa.Table:
        """The rows of some events as the table has them, without the events' own columns."""
        rows, own = self._events.rows, {each.name for each in self._schema.fields}
        control = set(self._events.columns.control) - own
        if not len(places):
            return pa.table({name: rows.column(name).slice(0, 0) for name in rows.column_names if name in own})
        data = rows.select([name for name in rows.column_names if name not in control])
        return self._events.fitted(data.take(pa.array(places)), self._schema, places)

    def _write(
        self,
        keys: Sequence[KeyColumn],
        key_values: Sequence[pa.ChunkedArray],
        deletes: Any,
        upserts: pa.Table,
        finder: StoredRowFinder,
    ) -> AppliedChanges:
        change = self._change
        scanned = keys_filter(keys, key_values)
        stored = finder.find(list(change.plan(scanned).tasks()))
        stale = np.zeros(len(deletes), np.bool_)
        known = np.zeros(len(deletes), np.bool_)
        for each in stored:
            stale[each.events[each.is_newer]] = True
            known[each.events] = True
        affected = [each.affected(mask) for each in stored if (mask := ~stale[each.events]).any()]
        kept = ~stale & ~deletes
        gone = sum(len(each.positions) for each in affected)
        updated = int((kept & known).sum())
        if kept.any():
            written = upserts.filter(pa.array(~stale[~deletes]))
            written = self._completed(written, kept, stored)
        else:
            written = None
        self._commit(affected, scanned, written)
        return AppliedChanges(
            events=len(self._events),
            rows_inserted=int((kept & ~known).sum()),
            rows_updated=updated,
            rows_deleted=gone - updated,
            events_superseded=len(self._events) - len(deletes) + int(stale.sum()),
            offsets=self._after if self._reader else {},
        )

    def _commit(self, affected: Sequence[AffectedRows], scanned: BooleanExpression, written: pa.Table | None) -> None:
        if affected or written is not None:
            self._change.commit(affected, scanned, inserted=written)
            return
        self._change.commit_nothing(scanned)
        self._move_only()

    def _move_only(self) -> None:
        """Moves the offsets, by a snapshot that changes no row."""
        if self._reader is not None:
            self._change.add(FastAppend((), **self._options.update_fields()))

    # ------------------------------------------------------------------------------------- rows that were there

    def _completed(self, rows: pa.Table, kept: Any, stored: Sequence[StoredRows]) -> pa.Table:
        """The new rows with what they take over of the old ones: columns that the events lack, and row ids."""
        place_of = np.cumsum(kept) - 1  # of an event among the new rows
        sources = [np.empty(0, np.int64)]
        old_ids = []
        given = set(self._events.rows.column_names)
        missing = [field for field in self._schema.fields if field.name not in given]
        old_columns: list[pa.Table] = []
        for each in stored:
            chosen = each.affected(kept[each.events])
            if not len(chosen.positions):
                continue
            assert chosen.sources is not None
            sources.append(place_of[chosen.sources])
            if each.row_ids is not None:
                old_ids.append(each.row_ids.filter(pa.array(kept[each.events])))
            if missing:
                old_columns.append(self._old_values(chosen, missing))
        places = np.concatenate(sources)
        unique, at = np.unique(places, return_index=True)
        # Of each new row, where its old values are among the found rows; none for a new key.
        origin = np.full(rows.num_rows, -1, np.int64)
        origin[unique] = at
        taken = pa.array(origin, mask=origin < 0)
        if old_columns:
            old = pa.concat_tables(old_columns)
            for field in missing:
                index = self._schema.fields.index(field)
                values = combine(old.column(field.name)).take(taken)
                values = _chosen(values, rows.column(index), origin >= 0)
                rows = rows.set_column(index, rows.schema.field(index), values)
        if self._change.metadata.format_version >= 3:
            ids = pa.concat_arrays(old_ids) if old_ids else pa.array([], pa.int64())
            rows = rows.append_column(ROW_ID.name, ids.take(taken))
        return rows

    def _old_values(self, chosen: AffectedRows, missing: Sequence[NestedField]) -> pa.Table:
        rewriter = self._change.rewriter
        context = rewriter.context(Schema(*missing))
        batches = [
            batch.take(pa.array(inside)) for batch, _, inside in rewriter.batches(context, chosen) if len(inside)
        ]
        return pa.Table.from_batches(batches)


def _chosen(old: pa.Array, new: pa.ChunkedArray, mask: Any) -> pa.Array:
    """The old values where the mask is true, the new ones elsewhere."""
    fresh = combine(new)
    old = conform(old, fresh.type)
    choice = np.where(mask, np.arange(len(old)), len(old) + np.arange(len(old)))
    return pa.concat_arrays([old, fresh]).take(pa.array(choice))
