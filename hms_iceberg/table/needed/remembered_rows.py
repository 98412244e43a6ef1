"""The tables of a metastore, remembered for a while: for who looks after many tables, one after the other."""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from hms_iceberg.errors import NoSuchTableError
from hms_iceberg.metastore import Identifier, TableRow, TableRows

T = TypeVar("T")


class RememberedRows:
    """Implements `TableRows`. What rows of some minutes ago leave over may be deleted only if `fresh` ones do as well.

    Args:
        rows: the metastore.
        seconds: after so many, it is asked anew.
    """

    def __init__(self, rows: TableRows, seconds: float = 600) -> None:
        self._rows = rows
        self._seconds = seconds
        self._known: dict[object, tuple[float, object]] = {}
        self._lock = threading.Lock()
        self._asking: dict[object, threading.Lock] = {}
        self._oldest = -math.inf

    def fresh(self) -> RememberedRows:
        """Shares this cache, but ignores every answer that is older than this call.

        Several who ask for it at a time share an answer that nobody had asked for before.
        """
        fresh = copy.copy(self)
        fresh._oldest = time.monotonic()
        return fresh

    def rows(self, namespace: str | None = None) -> Iterator[TableRow]:
        """See the port."""
        every = self._remembered("rows", lambda: tuple(self._rows.rows()))
        return (row for row in every if namespace is None or row.identifier[0] == namespace.lower())

    def row(self, identifier: Identifier) -> TableRow | None:
        """See the port; never remembered."""
        return self._rows.row(identifier)

    def rows_with(self, key: str, text: str) -> Iterator[TableRow]:
        """See the port; never remembered."""
        return self._rows.rows_with(key, text)

    def iceberg_rows_without(self, key: str) -> Iterator[TableRow]:
        """See the port; they may be as old as all others."""
        return iter(self._remembered(f"without {key}", lambda: tuple(self._rows.iceberg_rows_without(key))))

    def partition_locations(self, identifier: Identifier) -> Iterator[str]:
        """See the port. If the table is gone, its row is forgotten with all others: it may have another name now."""
        try:
            return iter(self._remembered(identifier, lambda: tuple(self._rows.partition_locations(identifier))))
        except NoSuchTableError:
            self._forget_rows(identifier)
            raise

    def _forget_rows(self, identifier: Identifier) -> None:
        with self._lock:
            _, every = self._known.get("rows", (0.0, ()))
            if any(row.identifier == identifier for row in every):  # type: ignore[attr-defined]
                del self._known["rows"]

    def _remembered(self, key: object, ask: Callable[[], T]) -> T:
        """An answer; one thread asks for it, and the others wait."""
        with self._lock:
            asking = self._asking.setdefault(key, threading.Lock())
        with asking:
            since, answer = self._known.get(key, (-math.inf, None))
            now = time.monotonic()
            if answer is None or since < max(self._oldest, now - self._seconds):
                answer = ask()
                self._known[key] = now, answer  # what changed while it was told may not be in it
        return answer  # type: ignore[return-value]


def fresh_rows(rows: TableRows | None) -> TableRows | None:
    """Rows of a metastore as they are now, for what is about to be deleted."""
    return rows.fresh() if isinstance(rows, RememberedRows) else rows
