"""The metastore's calls, with typed errors that name the table or namespace and the remedy."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hms_iceberg.errors import (
    IcebergError,
    MetastoreError,
    NoSuchTableError,
)
from hms_iceberg.hms.connection.answers import is_unknown_method, typed_error
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.connection.pool import ConnectionPool, Reply
from hms_iceberg.hms.connection.thrift_types import TException, ttypes

logger = logging.getLogger(__name__)

# An alter without this makes the metastore list every file below the table's location.
KEEP_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}

BATCH = 500
_TOLD_BY_HIVE_2_AND_3 = "3.0"
_SETTING_OF_HIVE_3 = "metastore.thrift.uris"


class HmsClient:
    """Calls of a Hive Metastore 2.3, 3 or 4, safe for threads. MetastoreUnavailableError: none answers; MetastoreError:
    it refuses, with the Thrift exception as the cause; changes are sent at most once (MetastoreAnswerLostError)."""

    def __init__(self, settings: ClientSettings) -> None:
        self.pool = ConnectionPool(settings)
        self._knows_get_table_req = True

    def close(self) -> None:
        self.pool.close()

    # ---------------------------------------------------------------------------------------- namespaces

    def create_database(self, database: ttypes.Database) -> None:
        self._call("create_database", database, subject=f"namespace {database.name}", repeatable=False)

    def get_database(self, name: str) -> ttypes.Database:
        return self._call("get_database", name, subject=f"namespace {name}")

    def alter_database(self, name: str, database: ttypes.Database) -> None:
        self._call("alter_database", name, database, subject=f"namespace {name}", repeatable=False)

    def drop_database(self, name: str) -> None:
        """Drops an empty namespace, and no file; call `get_database` first: Hive 2.3 hides that a name is unknown."""
        self._call("drop_database", name, False, False, subject=f"namespace {name}", repeatable=False)

    def list_databases(self) -> list[str]:
        return list(self._call("get_all_databases", subject="the list of namespaces"))

    # -------------------------------------------------------------------------------------------- tables

    def get_table(self, database: str, name: str) -> ttypes.Table:
        """The row of a table of any kind."""
        subject = f"table {database}.{name}"
        if self._knows_get_table_req:
            try:
                request = ttypes.GetTableRequest(dbName=database, tblName=name)
                return self._call("get_table_req", request, subject=subject).table
            except MetastoreError as error:
                if not is_unknown_method(error):
                    raise
                self._knows_get_table_req = False  # a server before Hive 2.3
        return self._call("get_table", database, name, subject=subject)

    def get_tables(self, database: str, names: Sequence[str]) -> Iterator[ttypes.Table]:
        """Several tables of a namespace, in batches; names without a table are left out."""
        for start in range(0, len(names), BATCH):
            batch = list(names[start : start + BATCH])
            subject = f"namespace {database}"
            try:
                request = ttypes.GetTablesRequest(dbName=database, tblNames=batch)
                yield from self._call("get_table_objects_by_name_req", request, subject=subject).tables
            except MetastoreError as error:
                if not is_unknown_method(error):
                    raise
                yield from self._call("get_table_objects_by_name", database, batch, subject=subject)

    def list_tables(self, database: str, pattern: str | None = None) -> list[str]:
        """Names of the tables and views of a namespace (none if it is missing) like a pattern with `*` for anything."""
        subject = f"namespace {database}"
        if pattern is not None:
            return list(self._call("get_tables", database, pattern, subject=subject))
        return list(self._call("get_all_tables", database, subject=subject))

    def list_all_tables(self) -> dict[str, list[str]]:
        """Names of all tables and views by their namespaces, in two calls where the server can tell them so."""
        found: dict[str, list[str]] = {}
        try:
            every = self._call("get_table_meta", "*", "*", [], subject="the list of all tables")
        except MetastoreError as error:
            logger.info("Listing all tables namespace by namespace: %s", error)
            every = ()
        for each in every:
            found.setdefault(each.dbName, []).append(each.tableName)
        # Not every server takes the pattern for all: one that told nothing of a namespace is asked again.
        return {name: found.get(name) or self.list_tables(name) for name in self.list_databases()}

    def list_tables_by_parameter(self, database: str, key: str, value: str) -> list[str]:
        """Names of the tables one of whose parameters has that value (without `%` and `_`)."""
        # `like`, because some databases cannot compare their long text columns with `=` (HIVE-21614).
        condition = f'hive_filter_field_params__{key} like "{value}"'
        subject = f"namespace {database}"
        return list(self._call("get_table_names_by_filter", database, condition, -1, subject=subject))

    def create_table(self, table: ttypes.Table) -> None:
        subject = f"table {table.dbName}.{table.tableName}"
        try:
            self._call("create_table", table, subject=subject, repeatable=False)
        except (NoSuchTableError, MetastoreError) as error:
            # Servers name a missing namespace in one of two classes, without saying that it is one.
            if isinstance(error.__cause__, ttypes.NoSuchObjectException | ttypes.InvalidObjectException):
                self.get_database(table.dbName)
            raise

    def alter_table(
        self, database: str, name: str, table: ttypes.Table, environment: Mapping[str, str] | None = None
    ) -> None:
        """Replaces a table's row by `table`, which may have another name: that renames it. Statistics are kept."""
        context = ttypes.EnvironmentContext({**KEEP_STATISTICS, **(environment or {})})
        method = "alter_table_with_environment_context"
        self._call(method, database, name, table, context, subject=f"table {database}.{name}", repeatable=False)

    def alter_tables_pipelined(
        self, requests: Sequence[tuple[str, str, ttypes.Table]]
    ) -> list[tuple[IcebergError | None, float]]:
        """Alters rows (namespace, name, new row), all sent before the first answer is read; the server does them in
        order. Returns the error of each, None for a success, and the time of its answer (`time.monotonic`, seconds)."""
        method = "alter_table_with_environment_context"
        context = ttypes.EnvironmentContext(dict(KEEP_STATISTICS))
        replies = self.pool.send([(method, (*request, context)) for request in requests]).replies()
        return [
            (self._refusal(reply, method, f"table {database}.{name}"), reply.moment)
            for (database, name, _), reply in zip(requests, replies, strict=True)
        ]

    def drop_table(
        self, database: str, name: str, delete_data: bool = False, environment: Mapping[str, str] | None = None
    ) -> None:
        """Drops a table's row, by default without touching a file."""
        context = ttypes.EnvironmentContext(dict(environment or {}))
        method = "drop_table_with_environment_context"
        self._call(method, database, name, delete_data, context, subject=f"table {database}.{name}", repeatable=False)

    # ---------------------------------------------------------------------------------------- partitions

    def list_partition_names(self, database: str, name: str) -> list[str]:
        """Names of a table's partitions (`month=1/day=2`), sorted by the server."""
        return list(self._call("get_partition_names", database, name, -1, subject=f"table {database}.{name}"))

    def get_partitions(self, database: str, name: str, names: Sequence[str]) -> Iterator[ttypes.Partition]:
        """Partitions by name, in batches."""
        subject = f"table {database}.{name}"
        for start in range(0, len(names), BATCH):
            batch = list(names[start : start + BATCH])
            yield from self._call("get_partitions_by_names", database, name, batch, subject=subject)

    def get_partition(self, database: str, name: str, values: Sequence[str]) -> ttypes.Partition | None:
        """The partition of these values as Hive's text; None if there is none."""
        try:
            return self._call("get_partition", database, name, list(values), subject=f"table {database}.{name}")
        except (NoSuchTableError, MetastoreError) as error:
            if isinstance(error.__cause__, ttypes.NoSuchObjectException):
                return None
            raise

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[tuple[Sequence[str], ttypes.StorageDescriptor]]
    ) -> None:
        """Adds partitions, in batches; each by its values as Hive's text, and its storage."""
        subject = f"table {database}.{name}"
        now = int(time.time())
        rows = [
            ttypes.Partition(list(values), database, name, now, 0, descriptor, parameters={})
            for values, descriptor in partitions
        ]
        for start in range(0, len(rows), BATCH):
            self._call("add_partitions", rows[start : start + BATCH], subject=subject, repeatable=False)

    def alter_partition(self, database: str, name: str, partition: ttypes.Partition) -> None:
        context = ttypes.EnvironmentContext(dict(KEEP_STATISTICS))
        method = "alter_partition_with_environment_context"
        self._call(method, database, name, partition, context, subject=f"table {database}.{name}", repeatable=False)

    def drop_partition(self, database: str, name: str, values: Sequence[str]) -> None:
        """Removes a partition's row, and no file."""
        subject = f"table {database}.{name}"
        self._call("drop_partition", database, name, list(values), False, subject=subject, repeatable=False)

    # --------------------------------------------------------------------------------------------- locks

    def lock(self, request: ttypes.LockRequest, subject: str, timeout: float | None = None) -> ttypes.LockResponse:
        """Asks for a lock; `subject` is named in messages."""
        return self._call("lock", request, subject=subject, repeatable=False, timeout=timeout)

    def check_lock(self, lock_id: int, subject: str, timeout: float | None = None) -> ttypes.LockResponse:
        """Whether a waiting lock is granted by now; also a heartbeat."""
        request = ttypes.CheckLockRequest(lockid=lock_id)
        return self._call("check_lock", request, subject=subject, timeout=timeout)

    def heartbeat(self, lock_id: int, subject: str, timeout: float | None = None) -> None:
        self._call("heartbeat", ttypes.HeartbeatRequest(lockid=lock_id), subject=subject, timeout=timeout)

    def unlock(self, lock_id: int, subject: str, timeout: float | None = None) -> None:
        """Gives a lock, granted or waiting, back."""
        self._call("unlock", ttypes.UnlockRequest(lockid=lock_id), subject=subject, timeout=timeout)

    def show_locks(
        self, database: str | None = None, name: str | None = None, timeout: float | None = None
    ) -> list[ttypes.ShowLocksResponseElement]:
        """Locks granted and waiting, of one table, one namespace or all, by id."""
        request = ttypes.ShowLocksRequest(dbname=database, tablename=name)
        found = self._call("show_locks", request, subject="the list of locks", timeout=timeout).locks or []
        wanted = [
            lock
            for lock in found
            if (database is None or (lock.dbname or "").lower() == database.lower())
            and (name is None or (lock.tablename or "").lower() == name.lower())
        ]
        return sorted(wanted, key=lambda lock: lock.lockid)

    # ------------------------------------------------------------------------------------------- details

    def version(self) -> str:
        """The version that the server reports: that of Hive since Hive 4; older servers all report 3.0."""
        return str(self._call("getVersion", subject="the version"))

    def config_value(self, name: str, default: str, timeout: float | None = None) -> str:
        """A setting of the server; some servers tell only those that begin with `hive`."""
        return str(self._call("get_config_value", name, default, subject=f"setting {name}", timeout=timeout))

    def release(self) -> tuple[int, ...] | None:
        """The server's release of Hive: (4, 0, 1), (3,) or (2,); None if it cannot be found out."""
        version = self.version()
        full = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version)
        if full is not None:
            return tuple(map(int, full.groups()))
        if version != _TOLD_BY_HIVE_2_AND_3:
            return None
        try:
            self.config_value(_SETTING_OF_HIVE_3, "")
        except MetastoreError as error:
            if isinstance(error.__cause__, ttypes.ConfigValSecurityException):
                return (2,)
            raise
        return (3,)

    def last_change(self) -> int:
        """The number of the metastore's last notification (0 if it writes none, or none was written yet)."""
        return int(self._call("get_current_notificationEventId", subject="the last change").eventId)

    def _refusal(self, reply: Reply, method: str, subject: str) -> IcebergError | None:
        """The error of a reply; None if there is none."""
        if not isinstance(reply.error, TException):
            return reply.error
        error = typed_error(reply.error, method, subject, str(self.pool))
        error.__cause__ = reply.error
        return error

    def _call(
        self, method: str, *arguments: Any, subject: str, repeatable: bool = True, timeout: float | None = None
    ) -> Any:
        try:
            return self.pool.call(method, *arguments, repeatable=repeatable, timeout=timeout)
        except TException as error:
            raise typed_error(error, method, subject, str(self.pool)) from error
