"""Locations of the files of all tables of a metastore, of any kind."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hms_iceberg.errors import MetastoreError, NoSuchNamespaceError, NoSuchTableError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import TABLE_TYPE, is_iceberg_table
from hms_iceberg.metastore import Identifier, TableRow


def list_names(
    client: HmsClient, namespace: str, table_type: str, is_wanted: Callable[[ttypes.Table], bool]
) -> list[str]:
    """Sorted names of a namespace's rows with a `table_type`; `is_wanted` decides where the server does not filter."""
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
        def names() -> Mapping[str, Sequence[str]]:
            if namespace is not None:
                return {namespace.lower(): self._client.list_tables(namespace.lower())}
            return self._client.list_all_tables()

        return _table_rows(self._listed(names))

    def row(self, identifier: Identifier) -> TableRow | None:
        try:
            row = self._client.get_table(*(each.lower() for each in identifier))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        return next(_table_rows((row,)), None)

    def is_any_with(self, key: str, text: str) -> bool:
        """Whether any table or view has the text in a property now."""
        # The server takes `.` for any character, and may find more: so slashes may be doubled there.
        pattern = f".*{_NOT_PLAIN.sub('.', text).replace('/', '/.*')}.*"

        def names() -> Mapping[str, Sequence[str]]:
            return {each: self._names(each, key, pattern) for each in self._client.list_databases()}

        return any(text in (row.parameters or {}).get(key, "") for row in self._listed(names))

    def _names(self, database: str, key: str, pattern: str) -> list[str]:
        """Names of rows whose property matches a pattern; all if the server cannot filter."""
        try:
            return self._client.list_tables_by_parameter(database, key, pattern)
        except NoSuchNamespaceError:  # dropped meanwhile
            return []
        except MetastoreError as error:  # filters on parameters can be switched off on the server
            logger.info("Looking at all tables of %s without the server's filter: %s", database, error)
            return self._client.list_tables(database)

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

    def _listed(self, names: Callable[[], Mapping[str, Sequence[str]]]) -> Iterator[Any]:
        """The rows of the given names, also if they are renamed during the search, into any namespace.

        The server lists the names first and the tables after. So names are asked for again until none is new. A table
        may also take the name of one that was listed before: all are asked for once more if one is not found.
        """
        found: set[tuple[str, str]] = set()
        tries: Counter[tuple[str, str]] = Counter()
        again = True
        while True:
            pending = {
                database: [each for each in told if (database, each.lower()) not in found]
                for database, told in names().items()
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
