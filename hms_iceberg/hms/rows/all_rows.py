"""Locations of the files of all tables of a metastore, of any kind."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hms_iceberg.errors import MetastoreError, NoSuchNamespaceError, NoSuchTableError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import ICEBERG, TABLE_TYPE, is_iceberg_table
from hms_iceberg.metastore import Identifier, TableRow


def list_names(
    client: HmsClient, namespace: str, table_type: str, is_wanted: Callable[[ttypes.Table], bool]
) -> list[str]:
    """Names of a namespace's rows with the parameter `table_type`, sorted; `is_wanted` decides where the server does
    not filter."""
    try:
        names = client.list_tables_by_parameter(namespace, TABLE_TYPE, table_type)
    except NoSuchNamespaceError:
        raise
    except MetastoreError as error:  # filters on parameters can be switched off on the server
        logger.info("Listing %s without the server's filter: %s", namespace, error)
        rows = client.get_tables(namespace, client.list_tables(namespace))
        names = [row.tableName for row in rows if is_wanted(row)]
    if not names:
        client.get_database(namespace)  # a metastore lists nothing for a namespace that does not exist
    return sorted(names)


logger = logging.getLogger(__name__)

_TRIES = 3
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9/]")


class HiveTableRows:
    """Implements `TableRows` over the calls of a Hive Metastore, some hundred tables a call."""

    def __init__(self, client: HmsClient) -> None:
        self._client = client

    def rows(self, namespace: str | None = None) -> Iterator[TableRow]:
        return _table_rows(self._listed(self._client.list_tables, namespace))

    def row(self, identifier: Identifier) -> TableRow | None:
        try:
            row = self._client.get_table(*(each.lower() for each in identifier))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        return next(_table_rows((row,)), None)

    def rows_with(self, key: str, text: str) -> Iterator[TableRow]:
        return (row for row in _table_rows(self._with(key, text)) if row.has(key, text))

    def is_any_with(self, key: str, text: str) -> bool:
        """Whether any table or view has the text in a property now."""
        return any(text in (row.parameters or {}).get(key, "") for row in self._with(key, text))

    def iceberg_rows_without(self, key: str) -> Iterator[TableRow]:
        def names(database: str) -> list[str]:
            # Any word of this length, as it may be in lower case.
            typed = self._names(database, TABLE_TYPE, "." * len(ICEBERG), lambda: self._client.list_tables(database))
            return sorted({*typed} - {*self._names(database, key, "..*", list)})

        found = _table_rows(self._listed(names))
        return (row for row in found if row.is_iceberg and not row.properties.get(key))

    def _with(self, key: str, text: str) -> Iterator[Any]:
        """Rows whose property may have the text: the server's filter is coarse, so the caller has to check each row."""
        # The server takes `.` for any character, and may find more: so slashes may be doubled there.
        pattern = f".*{_NOT_PLAIN.sub('.', text).replace('/', '/.*')}.*"
        every = self._client.list_tables
        return self._listed(lambda database: self._names(database, key, pattern, lambda: every(database)))

    def _names(self, database: str, key: str, pattern: str, unfiltered: Callable[[], list[str]]) -> list[str]:
        """Names of rows whose property matches a pattern; those of `unfiltered` if the server cannot filter."""
        if not key.isidentifier():  # the server's filters have no other keys
            return unfiltered()
        try:
            return self._client.list_tables_by_parameter(database, key, pattern)
        except NoSuchNamespaceError:  # dropped meanwhile
            return []
        except MetastoreError as error:  # filters on parameters can be switched off on the server
            logger.info("Looking at all tables of %s without the server's filter: %s", database, error)
            return unfiltered()

    def partition_locations(self, identifier: Identifier) -> Iterator[str]:
        database, name = identifier
        found, names = 0, list[str]()
        try:
            names = self._client.list_partition_names(database, name)
            for row in self._client.get_partitions(database, name, names):
                found += 1
                if row.sd is not None and row.sd.location:
                    yield row.sd.location
        except MetastoreError:  # also of a table that is gone, from some servers; others tell no partitions
            self._client.get_table(database, name)
            raise
        if not names or found < len(names):
            self._client.get_table(database, name)

    def _listed(self, names: Callable[[str], list[str]], namespace: str | None = None) -> Iterator[Any]:
        """The rows of the given names, also if they are renamed during the search, into any namespace.

        The server lists the names first and the tables after. So names are asked for again until none is new. A table
        may also take the name of one that was listed before: all are asked for once more if one is not found.
        """
        found: set[tuple[str, str]] = set()
        tries: Counter[tuple[str, str]] = Counter()
        again = True
        while True:
            pending = {
                database: [each for each in names(database) if (database, each.lower()) not in found]
                for database in (self._client.list_databases() if namespace is None else [namespace.lower()])
            }
            asked = {(database, each.lower()) for database, missing in pending.items() for each in missing}
            if not asked:
                return
            for database, missing in pending.items():
                try:
                    for row in self._client.get_tables(database, missing):
                        found.add((database, row.tableName.lower()))
                        yield row
                except NoSuchNamespaceError:  # dropped meanwhile
                    continue
            absent = asked - found
            tries.update(absent)
            if absent and again:
                again = False
                found.clear()
            _refuse_untold(name for name in absent if tries[name] == _TRIES)


def _refuse_untold(names: Iterable[Identifier]) -> None:
    for name in names:
        raise MetastoreError(
            f"The metastore lists table {'.'.join(name)}, and does not tell what it is. Run this again; if it does so "
            "again, give this user access to the table, or mend its row."
        )


def _table_rows(rows: Iterable[Any]) -> Iterator[TableRow]:
    """The values of Thrift `Table`s; nothing for views."""
    for row in rows:
        if row.sd is not None and row.sd.location and row.tableType != "VIRTUAL_VIEW":
            yield TableRow(
                (row.dbName, row.tableName),
                row.sd.location,
                dict(row.parameters or {}),
                is_iceberg_table(row),
                bool(row.partitionKeys),
            )
