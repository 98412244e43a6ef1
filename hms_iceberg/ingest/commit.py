"""One commit of a batch: rows, dead letters and offsets of all its tables together, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pyarrow as pa

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import BadEventError, ChangeEventError, CorruptMetadataError
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.ingest.batch import TablePart
from hms_iceberg.ingest.progress import Offsets
from hms_iceberg.table import Table
from hms_iceberg.table.changes.row_change import write_rows
from hms_iceberg.table.table import TableTransaction
from hms_iceberg.transaction.several_tables import SeveralTables
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.applied_offsets import OFFSETS, ApplyOffsets, as_text
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.rows.overwrite import DeleteFiles
from hms_iceberg.updates.table_settings import SetProperties

_TOPICS = "hms_iceberg.topics."
"""What the key of a table's property begins with that has the ids of the topics; the reader's name follows."""


def topic_ids(table: Table, reader: str) -> dict[str, str]:
    """The ids of the topics whose events a reader has applied to a table, as far as it knows them."""
    try:
        found: dict[str, str] = dict(json.loads(table.properties.get(_TOPICS + reader, "{}")))
        return found
    except (ValueError, TypeError) as error:
        raise CorruptMetadataError(
            f"The property {_TOPICS + reader} of table {'.'.join(table.name())} cannot be read: {error}. Somebody has "
            "changed it; set it to what it was, or remove it."
        ) from error


class BatchCommit:
    """Collects what a batch does to its tables, and commits it. With each change come the offsets of its table after
    it."""

    def __init__(self, catalog: Catalog, reader: str, topic_ids: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._reader = reader
        self._topic_ids = topic_ids
        self._begun: list[Transaction] = []

    def apply(self, part: TablePart, offsets: Offsets) -> None:
        if part.is_truncated:
            self._truncate(part.table, offsets)
            return
        transaction = self._begin(part.table)
        grown, rows = part.rows.grown, part.rows
        writing = TableTransaction(transaction, part.table.moved)
        if grown is not None:
            with writing.update_schema() as update:
                update.union_by_name(grown)
        if rows.keys:
            try:
                writing.apply_changes(
                    rows.arrow(),
                    keys=rows.keys,
                    operation=rows.operation_column,
                    offsets=offsets,
                    name=self._reader,
                )
            except ChangeEventError as error:
                raise BadEventError(f"The event of {rows.place(error.row)} is no change of a table: {error}") from error
        else:
            self._append(transaction, part.table, rows.arrow(with_operations=False), offsets)

    def append(self, table: Table, rows: pa.Table, offsets: Offsets) -> None:
        """Adds rows to a table that has no key."""
        self._append(self._begin(table), table, rows, offsets)

    def move(self, table: Table, offsets: Offsets) -> None:
        """Gives a table the offsets, and changes no row."""
        self._once(self._begin(table), table, offsets, lambda properties: FastAppend((), properties=properties))

    def commit(self) -> None:
        """Commits all of it, as `Transaction.commit`; a CommitConflictError (another reader of the name, or another
        writer) has changed nothing."""
        if len(self._begun) == 1:
            self._begun[0].commit()
        elif self._begun:
            SeveralTables(self._begun, self._catalog.metastore).commit()

    def abandon(self) -> None:
        """Deletes the files that were written for it."""
        for each in self._begun:
            each.abandon()

    def _begin(self, table: Table) -> Transaction:
        transaction = table.begin_transaction()
        self._begun.append(transaction)
        known = topic_ids(table, self._reader)
        if not known.items() >= self._topic_ids.items():
            ids = json.dumps({**known, **self._topic_ids}, sort_keys=True)
            transaction.add(SetProperties({_TOPICS + self._reader: ids}))
        return transaction

    def _append(self, transaction: Transaction, table: Table, rows: pa.Table, offsets: Offsets) -> None:
        files = write_rows(transaction, rows)
        self._once(transaction, table, offsets, lambda properties: FastAppend(files, properties=properties))

    def _truncate(self, table: Table, offsets: Offsets) -> None:
        if table.current_snapshot() is None:
            self.move(table, offsets)
            return
        everything, transaction = AlwaysTrue(), self._begin(table)
        self._once(
            transaction, table, offsets, lambda properties: DeleteFiles(row_filter=everything, properties=properties)
        )

    def _once(
        self,
        transaction: Transaction,
        table: Table,
        offsets: Offsets,
        make: Callable[[Mapping[str, str]], Update],
    ) -> None:
        """Adds an update that moves the offsets, and is left out where they have moved already."""
        update = make({OFFSETS + self._reader: as_text(offsets)})
        transaction.add(ApplyOffsets(update, self._reader, table.applied_offsets(self._reader), offsets))
