"""The tables that questions change: at their newest version, or staged by a statement that commits them as a whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spark.catalogs import OpenCatalogs
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.table import Table
from hms_iceberg.table.table import TableTransaction


class Targets:
    """The tables that are staged, by number, and the way to those that are not."""

    def __init__(self, catalogs: OpenCatalogs) -> None:
        self.catalogs = catalogs
        self._staged: dict[int, TableTransaction] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()

    def metadata(self, question: Mapping[str, Any], storage: Storage) -> TableMetadata:
        """The metadata of the table that a question is to change: a staged one, or as `OpenCatalogs.table` finds it."""
        if "staged" in question:
            return self._transaction(question["staged"]).metadata
        return self.catalogs.table(question, storage).metadata

    @contextmanager
    def transaction(
        self, question: Mapping[str, Any], storage: Storage, table: Table | None = None
    ) -> Iterator[TableTransaction]:
        """A transaction for what a question changes, committed at the end of the block. That of a staged table is not
        committed here: its statement does it. It begins with `table`, by default at its newest version."""
        if "staged" in question:
            yield self._transaction(question["staged"])
            return
        transaction = (table or self.catalogs.table(question, storage)).transaction()
        try:
            yield transaction
            is_change = bool(transaction._transaction.updates)
        except BaseException:
            transaction.abandon()
            raise
        if is_change:
            transaction.commit_transaction()
        else:
            transaction.abandon()

    def stage(self, transaction: TableTransaction) -> int:
        """Keeps a transaction until it is committed or abandoned; returns its number."""
        with self._lock:
            number = next(self._numbers)
            self._staged[number] = transaction
        return number

    def unstage(self, number: int) -> TableTransaction:
        """The transaction of a staged table, which ends with that."""
        with self._lock:
            transaction = self._staged.pop(number, None)
        if transaction is None:
            raise InvalidInputError(f"There is no staged table of number {number}: it was committed or given up.")
        return transaction

    def _transaction(self, number: int) -> TableTransaction:
        with self._lock:
            transaction = self._staged.get(number)
        if transaction is None:
            raise InvalidInputError(f"There is no staged table of number {number}: it was committed or given up.")
        return transaction
