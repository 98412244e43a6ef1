"""Locations of the files of all tables of a metastore, of any kind."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hms_iceberg.errors import MetastoreError, MetastoreUnavailableError, NoSuchNamespaceError, NoSuchTableError
from hms_iceberg.hms.connection.client import BATCH, HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import ICEBERG, TABLE_TYPE, VIRTUAL_VIEW, is_iceberg_table, is_iceberg_view
from hms_iceberg.metastore import Identifier, ListedTable, TableKind, TableRow


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
_FEW = 8  # namespaces that are listed one by one
_AT_ONCE = 8  # requests for some hundred tables
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

    def listed(
        self, of_namespace: Callable[[str], bool], of_table: Callable[[Identifier], bool]
    ) -> Iterator[ListedTable]:
        databases = [each for each in self._client.list_databases() if of_namespace(each)]
        every = self._client.list_all_tables() if len(databases) > _FEW else {}
        parts = list[tuple[str, list[str]]]()
        for database in databases:
            try:
                names = every[database] if database in every else self._client.list_tables(database)
            except MetastoreUnavailableError:
                raise
            except MetastoreError as error:
                yield ListedTable((database,), None, error=f"{type(error).__name__}: {error}")
                continue
            wanted = [each for each in names if of_table((database, each))]
            parts += [(database, wanted[start : start + BATCH]) for start in range(0, len(wanted), BATCH)]
        # The server asks its database for each table: it takes its time, and may have several at work.
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="iceberg-listing") as pool:
            for rows in pool.map(lambda part: list(self._rows_of(*part)), parts):
                yield from rows

    def _rows_of(self, database: str, names: Sequence[str]) -> Iterator[ListedTable]:
        """The rows of some tables, all in one answer; those that it lacks are asked for one by one."""
        try:
            rows = list(self._client.get_tables(database, names))
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:  # one that this user may not see can be the end of them all
            logger.info("Asking for %d tables of %s one by one: %s", len(names), database, error)
            rows = []
        yield from map(_listed_table, rows)
        known = {each.tableName.lower() for each in rows}
        for name in (each for each in names if each.lower() not in known):
            try:
                yield _listed_table(self._client.get_table(database, name))
            except (NoSuchTableError, NoSuchNamespaceError):  # dropped or renamed meanwhile
                continue
            except MetastoreUnavailableError:
                raise
            except MetastoreError as error:
                yield ListedTable((database, name), None, error=f"{type(error).__name__}: {error}")

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
        """The rows of the given names, whatever is renamed meanwhile: the server lists names first and tables after, so
        names are asked for until none is new, and all again if one is not found."""
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


def _listed_table(row: ttypes.Table) -> ListedTable:
    properties = dict(row.parameters or {})
    if (row.tableType or "").upper() == VIRTUAL_VIEW:
        kind = TableKind.ICEBERG_VIEW if is_iceberg_view(row) else TableKind.HIVE_VIEW
    else:  # also one whose row has lost the location of its metadata
        kind = TableKind.ICEBERG if properties.get(TABLE_TYPE, "").upper() == ICEBERG else TableKind.HIVE
    location = (row.sd.location if row.sd is not None else None) or ""
    return ListedTable((row.dbName, row.tableName), kind, location, properties)


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
