"""Rows of a metastore that are asked for once: by one question about many files, or by who looks after many tables."""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from hms_iceberg.errors import NoSuchTableError
from hms_iceberg.metastore import Identifier, TableRow, TableRows

T = TypeVar("T")

# Beginnings of properties that describe a table's columns and its content.
_LONG = ("current-", "default-", "spark.sql.sources.schema", "spark.sql.statistics", "COLUMN_STATS_ACCURATE")


class RememberedRows:
    """Implements `TableRows` with a cache of some minutes. Before files are deleted, `fresh` rows confirm it."""

    def __init__(self, rows: TableRows, seconds: float = 600) -> None:
        self._rows = rows
        self._seconds = seconds
        self._known: dict[object, tuple[float, object]] = {}
        self._lock = threading.Lock()
        self._asking: dict[object, threading.Lock] = {}
        self._oldest = -math.inf

    def fresh(self) -> RememberedRows:
        """Shares this cache, but ignores every answer that is older than this call. Several who ask for it at a time
        share an answer that nobody had asked for before."""
        fresh = copy.copy(self)
        fresh._oldest = time.monotonic()
        return fresh

    def rows(self, namespace: str | None = None) -> Iterator[TableRow]:
        """All tables that have files, Iceberg's and others."""
        every = self._remembered("rows", lambda: tuple(map(_slim, self._rows.rows())))
        return (row for row in every if namespace is None or row.identifier[0] == namespace.lower())

    def row(self, identifier: Identifier) -> TableRow | None:
        """One table, of whatever kind; None if there is none, or it is a view; never remembered."""
        return self._rows.row(identifier)

    def partition_locations(self, identifier: Identifier) -> Iterator[str]:
        """Where the partitions of a table are. If the table is gone, its row is forgotten with all others: it may have
        another name now."""
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


def _slim(row: TableRow) -> TableRow:
    """A row without what no place and no owner is known by, which is most of it."""
    told = {key: value for key, value in row.properties.items() if not key.startswith(_LONG)}
    return replace(row, properties=told)


def asked_once(rows: TableRows) -> RememberedRows:
    """The rows of a metastore, all of which are asked for at most once from now on."""
    return rows if isinstance(rows, RememberedRows) else RememberedRows(rows)


def fresh_rows(rows: TableRows | None) -> TableRows | None:
    """Rows of a metastore as they are now, for what is about to be deleted."""
    return rows.fresh() if isinstance(rows, RememberedRows) else rows
