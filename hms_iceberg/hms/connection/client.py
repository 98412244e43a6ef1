"""The metastore's calls, with typed errors that name the table or namespace and what to do."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hms_iceberg.errors import (
    IcebergError,
    MetastoreError,
    NoSuchTableError,
)
from hms_iceberg.hms.connection.answers import is_unknown_method, typed_error
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.connection.pool import ConnectionPool, Reply, SentRequests
from hms_iceberg.hms.connection.thrift_types import TException, ttypes

logger = logging.getLogger(__name__)

# An alter without this makes the metastore list every file below the table's location.
KEEP_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}

_BATCH = 500
_TOLD_BY_HIVE_2_AND_3 = "3.0"
_SETTING_OF_HIVE_3 = "metastore.thrift.uris"


class HmsClient:
    """Calls of a Hive Metastore 2.3, 3 or 4. Thread safe.

    Every method raises `MetastoreUnavailableError` if no metastore answers, and `MetastoreError` if it
    refuses for a reason that has no class of its own; the Thrift exception is its cause. Methods that change something
    are sent at most once and may raise `MetastoreAnswerLostError`.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.pool = ConnectionPool(settings)
        self._knows_get_table_req = True

    def close(self) -> None:
        """Closes the connections."""
        self.pool.close()

    # ---------------------------------------------------------------------------------------- namespaces

    def create_database(self, database: ttypes.Database) -> None:
        """Creates a namespace.

        Raises:
            NamespaceAlreadyExistsError: it is there already.
        """
        self._call("create_database", database, subject=f"namespace {database.name}", repeatable=False)

    def get_database(self, name: str) -> ttypes.Database:
        """The metastore's row of a namespace.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        return self._call("get_database", name, subject=f"namespace {name}")

    def alter_database(self, name: str, database: ttypes.Database) -> None:
        """Replaces the metastore's row of a namespace.

        Args:
            name: the namespace.
            database: the new row.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        self._call("alter_database", name, database, subject=f"namespace {name}", repeatable=False)

    def drop_database(self, name: str) -> None:
        """Drops an empty namespace; no file is deleted.

        The metastore must have been asked for it before: Hive 2.3 does not say that a name is unknown.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
            NamespaceNotEmptyError: something is still in it.
        """
        self._call("drop_database", name, False, False, subject=f"namespace {name}", repeatable=False)

    def list_databases(self) -> list[str]:
        """Names of all namespaces."""
        return list(self._call("get_all_databases", subject="the list of namespaces"))

    # -------------------------------------------------------------------------------------------- tables

    def get_table(self, database: str, name: str) -> ttypes.Table:
        """The row of a table of any kind.

        Args:
            database: the namespace.
            name: the table's name.

        Raises:
            NoSuchTableError: no table of that name.
        """
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
        """Several tables of a namespace, in batches; names without a table are left out.

        Args:
            database: the namespace.
            names: the tables' names.
        """
        for start in range(0, len(names), _BATCH):
            batch = list(names[start : start + _BATCH])
            subject = f"namespace {database}"
            try:
                request = ttypes.GetTablesRequest(dbName=database, tblNames=batch)
                yield from self._call("get_table_objects_by_name_req", request, subject=subject).tables
            except MetastoreError as error:
                if not is_unknown_method(error):
                    raise
                yield from self._call("get_table_objects_by_name", database, batch, subject=subject)

    def list_tables(self, database: str, pattern: str | None = None) -> list[str]:
        """Names of all tables and views of a namespace; empty if the namespace does not exist.

        Args:
            database: the namespace.
            pattern: only names like this one, in which `*` stands for anything.
        """
        subject = f"namespace {database}"
        if pattern is not None:
            return list(self._call("get_tables", database, pattern, subject=subject))
        return list(self._call("get_all_tables", database, subject=subject))

    def list_tables_by_parameter(self, database: str, key: str, value: str) -> list[str]:
        """Names of the tables one of whose parameters has that value (without `%` and `_`).

        Args:
            database: the namespace.
            key: the parameter.
            value: its value.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        # `like`, because some databases cannot compare their long text columns with `=` (HIVE-21614).
        condition = f'hive_filter_field_params__{key} like "{value}"'
        subject = f"namespace {database}"
        return list(self._call("get_table_names_by_filter", database, condition, -1, subject=subject))

    def create_table(self, table: ttypes.Table) -> None:
        """Creates a table.

        Raises:
            TableAlreadyExistsError: a table or view of that name exists.
            NoSuchNamespaceError: no such namespace.
        """
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
        """Replaces a table's row by `table`, which may have another name: that renames it. Statistics are kept.

        Args:
            database: the table's namespace.
            name: its name.
            table: the whole row.
            environment: further properties of the call's environment context.

        Raises:
            NoSuchTableError: no table of that name.
        """
        context = ttypes.EnvironmentContext({**KEEP_STATISTICS, **(environment or {})})
        method = "alter_table_with_environment_context"
        self._call(method, database, name, table, context, subject=f"table {database}.{name}", repeatable=False)

    def alter_tables_pipelined(
        self, requests: Sequence[tuple[str, str, ttypes.Table]]
    ) -> list[tuple[IcebergError | None, float]]:
        """Alters several rows, all requests sent before the first answer is read; the server does them in order.

        Args:
            requests: namespace, name and new row of each.

        Returns:
            For each the error, None for a success, and when its answer came (`time.monotonic`, seconds).
        """
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
        """Drops a table's row, by default without touching a file.

        Args:
            database: the namespace.
            name: the table's name.
            delete_data: whether the server deletes the table's files.
            environment: further conditions for the server.

        Raises:
            NoSuchTableError: no table of that name.
        """
        context = ttypes.EnvironmentContext(dict(environment or {}))
        method = "drop_table_with_environment_context"
        self._call(method, database, name, delete_data, context, subject=f"table {database}.{name}", repeatable=False)

    # ---------------------------------------------------------------------------------------- partitions

    def list_partition_names(self, database: str, name: str) -> list[str]:
        """Names of a table's partitions (`month=1/day=2`), sorted by the server.

        Args:
            database: the namespace.
            name: the table's name.
        """
        return list(self._call("get_partition_names", database, name, -1, subject=f"table {database}.{name}"))

    def get_partitions(self, database: str, name: str, names: Sequence[str]) -> Iterator[ttypes.Partition]:
        """Partitions by name, in batches.

        Args:
            database: the namespace.
            name: the table's name.
            names: the partitions' names, such as `month=1/day=2`.
        """
        subject = f"table {database}.{name}"
        for start in range(0, len(names), _BATCH):
            batch = list(names[start : start + _BATCH])
            yield from self._call("get_partitions_by_names", database, name, batch, subject=subject)

    def get_partition(self, database: str, name: str, values: Sequence[str]) -> ttypes.Partition | None:
        """The partition of these values; None if there is none.

        Args:
            database: the namespace.
            name: the table's name.
            values: the partition's values as Hive's text.
        """
        try:
            return self._call("get_partition", database, name, list(values), subject=f"table {database}.{name}")
        except (NoSuchTableError, MetastoreError) as error:
            if isinstance(error.__cause__, ttypes.NoSuchObjectException):
                return None
            raise

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[tuple[Sequence[str], ttypes.StorageDescriptor]]
    ) -> None:
        """Adds partitions, in batches; each by its values and its storage.

        Args:
            database: the namespace.
            name: the table's name.
            partitions: values and storage of each partition.
        """
        subject = f"table {database}.{name}"
        now = int(time.time())
        rows = [
            ttypes.Partition(list(values), database, name, now, 0, descriptor, parameters={})
            for values, descriptor in partitions
        ]
        for start in range(0, len(rows), _BATCH):
            self._call("add_partitions", rows[start : start + _BATCH], subject=subject, repeatable=False)

    def alter_partition(self, database: str, name: str, partition: ttypes.Partition) -> None:
        """Replaces a partition's row.

        Args:
            database: the namespace.
            name: the table's name.
            partition: the new row, with the partition's values.
        """
        context = ttypes.EnvironmentContext(dict(KEEP_STATISTICS))
        method = "alter_partition_with_environment_context"
        self._call(method, database, name, partition, context, subject=f"table {database}.{name}", repeatable=False)

    def drop_partition(self, database: str, name: str, values: Sequence[str]) -> None:
        """Removes a partition's row, and no file.

        Args:
            database: the namespace.
            name: the table's name.
            values: the partition's values as Hive's text.
        """
        subject = f"table {database}.{name}"
        self._call("drop_partition", database, name, list(values), False, subject=subject, repeatable=False)

    # --------------------------------------------------------------------------------------------- locks

    def lock(self, request: ttypes.LockRequest, subject: str, timeout: float | None = None) -> ttypes.LockResponse:
        """Asks for a lock.

        Args:
            request: which lock.
            subject: what is asked about, for messages.
            timeout: seconds to wait for the answer; the connection's own time-out by default.

        Returns:
            its number, and whether it was granted or waits.
        """
        return self._call("lock", request, subject=subject, repeatable=False, timeout=timeout)

    def send_lock(self, request: ttypes.LockRequest, database: str, name: str, with_row: bool) -> SentRequests:
        """Asks for a lock on a table without waiting for the answer, which is to be fetched by `receive_lock`.

        Args:
            request: which lock.
            database, name: the table.
            with_row: whether the server is to read the table's row as well once it has decided on the lock.
        """
        requests: list[tuple[str, tuple[object, ...]]] = [("lock", (request,))]
        # What is between this and a server of HTTP may have it work on both requests at once.
        if with_row and self._knows_get_table_req and self.pool.settings.http is None:
            requests.append(("get_table_req", (ttypes.GetTableRequest(dbName=database, tblName=name),)))
        return self.pool.send(requests)

    def receive_lock(
        self, sent: SentRequests, subject: str, timeout: float | None = None
    ) -> tuple[ttypes.LockResponse, ttypes.Table | None]:
        """The answer to `send_lock`, as of `lock`, and the row; None if it was not asked for or could not be read.

        Args:
            sent: the request.
            subject: what is asked about, for messages.
            timeout: seconds to wait for the answer; the connection's own time-out by default.
        """
        lock, *rows = sent.replies(timeout)
        refusal = self._refusal(lock, "lock", subject)
        if refusal is not None:
            raise refusal
        return lock.value, next((row.value.table for row in rows if row.error is None), None)

    def check_lock(self, lock_id: int, subject: str, timeout: float | None = None) -> ttypes.LockResponse:
        """Whether a lock that waits is granted by now; also a sign of life.

        Args:
            lock_id: id of the lock.
            subject: what is asked about, for messages.
            timeout: seconds to wait for the answer; the connection's own time-out by default.
        """
        request = ttypes.CheckLockRequest(lockid=lock_id)
        return self._call("check_lock", request, subject=subject, timeout=timeout)

    def heartbeat(self, lock_id: int, subject: str, timeout: float | None = None) -> None:
        """A sign of life of a lock's holder.

        Args:
            lock_id: id of the lock.
            subject: what is asked about, for messages.
            timeout: seconds to wait for the answer; the connection's own time-out by default.
        """
        self._call("heartbeat", ttypes.HeartbeatRequest(lockid=lock_id), subject=subject, timeout=timeout)

    def unlock(self, lock_id: int, subject: str, timeout: float | None = None) -> None:
        """Gives a lock, granted or waiting, back.

        Args:
            lock_id: id of the lock.
            subject: what is asked about, for messages.
            timeout: seconds to wait for the answer; the connection's own time-out by default.
        """
        self._call("unlock", ttypes.UnlockRequest(lockid=lock_id), subject=subject, timeout=timeout)

    def unlock_behind(
        self, lock_id: int, subject: str, timeout: float, then: Callable[[BaseException | None], None]
    ) -> None:
        """Gives a lock back without waiting for the answer: `then` is called with its error, or None, by a thread.

        Args:
            lock_id: id of the lock.
            subject: what is asked about, for messages.
            timeout: seconds to wait for the answer.
            then: is called with the error, or None.
        """

        def answered(error: BaseException | None) -> None:
            if isinstance(error, TException):
                cause, error = error, typed_error(error, "unlock", subject, str(self.pool))
                error.__cause__ = cause
            then(error)

        self.pool.call_behind("unlock", ttypes.UnlockRequest(lockid=lock_id), timeout=timeout, then=answered)

    def show_locks(
        self, database: str | None = None, name: str | None = None, timeout: float | None = None
    ) -> list[ttypes.ShowLocksResponseElement]:
        """Locks granted and waiting, of one table, one namespace or all, by id.

        Args:
            database: the namespace; None for all.
            name: the table's name; None for all.
            timeout: seconds to wait for the answer; the connection's own time-out by default.
        """
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
        """A setting of the server; some servers tell only those that begin with `hive`.

        Args:
            name: the setting.
            default: the answer if the server does not have it.
            timeout: seconds to wait for the answer; the connection's own time-out by default.
        """
        return str(self._call("get_config_value", name, default, subject=f"setting {name}", timeout=timeout))

    def release(self) -> tuple[int, ...] | None:
        """The release of Hive that the server is of: (4, 0, 1), (3,) or (2,); None if nothing tells."""
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
        """The number of the last change that the metastore has noted (0 if it notes none, or none was made yet)."""
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
