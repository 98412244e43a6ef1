"""Reads and changes the rows of ordinary Hive tables, without ever touching a file.

A metastore moves the files of a managed table that is renamed, and deletes those of a managed table that is dropped, so
every method here that renames or drops refuses a row that is not external. Source: Apache Hive 2.3 to 4,
`HiveAlterHandler` and `HMSHandler`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import MetastoreError, NoSuchTableError, UnsupportedError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.hms.rows.all_rows import HiveTableRows
from hms_iceberg.hms.rows.hive_rows import (
    EXTERNAL,
    EXTERNAL_PURGE,
    EXTERNAL_TABLE,
    HivePartition,
    HiveTable,
    hive_partition,
    hive_table,
)
from hms_iceberg.metastore import CatalogMetastore

_STATISTICS = {"COLUMN_STATS_ACCURATE", "numRows", "numFiles", "totalSize", "rawDataSize"}


@dataclass(frozen=True)
class HiveRowChange:
    """Changes to make in a row: parameters to set (None removes one), and type and owner (None keeps them)."""

    parameters: Mapping[str, str | None]
    table_type: str | None = None
    owner: str | None = None

    def apply(self, row: Any) -> None:
        """Changes a Thrift `Table` in place."""
        parameters = dict(row.parameters or {})
        for key, value in self.parameters.items():
            if value is None:
                parameters.pop(key, None)
            else:
                parameters[key] = value
        row.parameters = parameters
        row.tableType = row.tableType if self.table_type is None else self.table_type
        row.owner = row.owner if self.owner is None else self.owner


UNCHANGED = HiveRowChange({})


def made_external(marker: Mapping[str, str | None]) -> HiveRowChange:
    """The change that makes a table external, so that no Hive touches its files when it is dropped or renamed."""
    return HiveRowChange({EXTERNAL: "TRUE", EXTERNAL_PURGE: "false", **marker}, table_type=EXTERNAL_TABLE)


class HiveTables:
    """Rows of the metastore for tables of every kind; its methods raise MetastoreUnavailableError, MetastoreError, and,
    if a change was sent and its answer did not come, MetastoreAnswerLostError."""

    def __init__(self, client: HmsClient) -> None:
        self._client = client

    @classmethod
    def of(cls, metastore: CatalogMetastore) -> HiveTables:
        if not isinstance(metastore, HiveMetastore):
            raise UnsupportedError(
                f"Only a Hive Metastore has Hive tables, and the catalog is on a {type(metastore).__name__}."
            )
        return cls(metastore.client)

    @property
    def table_rows(self) -> HiveTableRows:
        return HiveTableRows(self._client)

    def find(self, database: str, name: str) -> HiveTable | None:
        """A table's row; None if there is no table of that name."""
        try:
            return hive_table(self._client.get_table(database, name))
        except NoSuchTableError:
            return None

    def databases(self) -> list[str]:
        return self._client.list_databases()

    def tables(self, database: str) -> Iterator[HiveTable]:
        """The rows of all tables and views of a namespace."""
        for row in self._client.get_tables(database, self._client.list_tables(database)):
            yield hive_table(row)

    def partitions(self, database: str, name: str) -> Iterator[HivePartition]:
        names = self._client.list_partition_names(database, name)
        for row in self._client.get_partitions(database, name, names):
            yield hive_partition(row)

    def partition_count(self, database: str, name: str) -> int:
        return len(self._client.list_partition_names(database, name))

    def add_partitions(self, database: str, name: str, partitions: Sequence[HivePartition]) -> None:
        """Adds partitions with the table's format, each at its own location."""
        table = self._client.get_table(database, name)
        rows = []
        for each in partitions:
            descriptor = copy.deepcopy(table.sd)
            descriptor.location = each.storage.location
            rows.append((each.values, descriptor))
        self._client.add_partitions(database, name, rows)

    def drop_partition(self, database: str, name: str, values: Sequence[str], location: str) -> None:
        """Removes the row of a partition at a location, and no file; does nothing if there is no such row."""
        row = self._client.get_partition(database, name, values)
        if row is not None and row.sd.location == location:
            self._client.drop_partition(database, name, values)

    def forget_statistics(self, database: str, name: str, partitions: Sequence[Sequence[str]]) -> None:
        """Removes Hive's stored statistics, so that Hive counts again instead of answering from them. `partitions` are
        the values of each partition; empty values stand for a table without partitions."""
        table = self._client.get_table(database, name)
        for values in partitions:
            row = self._client.get_partition(database, name, values) if table.partitionKeys else table
            if row is None:
                continue
            row.parameters = {key: value for key, value in (row.parameters or {}).items() if key not in _STATISTICS}
            if table.partitionKeys:
                self._client.alter_partition(database, name, row)
            else:
                self._client.alter_table(database, name, row)

    def change(self, database: str, name: str, change: HiveRowChange) -> None:
        row = self._client.get_table(database, name)
        change.apply(row)
        self._client.alter_table(database, name, row)

    def copy(self, database: str, source: str, target: str, change: HiveRowChange) -> None:
        """Adds a row for the same files under a second name; not for a table with partitions, whose rows stay."""
        row = copy.deepcopy(self._client.get_table(database, source))
        assert not row.partitionKeys
        row.tableName = target
        change.apply(row)
        _refuse_unless_external(row, "copied")
        # Read and removed by the server: without it, it lists every file below the table's location.
        row.parameters["DO_NOT_UPDATE_STATS"] = "true"
        self._client.create_table(row)

    def take_over(self, database: str, target: str, source: str, change: HiveRowChange) -> None:
        """Gives the row `target` the content of the row `source` in one step; `source` stays. A metastore refuses to
        change partition keys, so neither may have any."""
        old, new = self._client.get_table(database, target), self._client.get_table(database, source)
        assert not old.partitionKeys and not new.partitionKeys
        new.tableName = old.tableName
        new.createTime = old.createTime  # which no change of a row can change
        change.apply(new)
        self._client.alter_table(database, target, new)

    def clear_columns(self, database: str, name: str) -> None:
        """Takes a table's columns out of its row, after which any others can be put in. A metastore compares the
        columns of a change with the present ones, and refuses to narrow their types."""
        row = self._client.get_table(database, name)
        row.sd.cols = []
        self._client.alter_table(database, name, row)

    def rename(self, database: str, source: str, target: str, change: HiveRowChange = UNCHANGED) -> None:
        self._client.alter_table(database, source, self._renamed(database, source, target, change))

    def rename_pair(
        self, database: str, first: tuple[str, str], second: tuple[str, str], change: HiveRowChange = UNCHANGED
    ) -> float:
        """Moves a name from one external table to another (old name, new name): `first` gives it up, `second` takes it,
        which fails unless the first succeeded. Both are sent at once; returns for how many milliseconds at most the
        name was unresolved."""
        requests = [
            (database, first[0], self._renamed(database, *first, UNCHANGED)),
            (database, second[0], self._renamed(database, *second, change)),
        ]
        answers = self._client.alter_tables_pipelined(requests)
        for refusal, _ in answers:
            if refusal is not None:
                raise refusal
        return (answers[1][1] - answers[0][1]) * 1000

    def drop(self, database: str, name: str) -> None:
        """Removes the row of an external table, and no file; does nothing if there is no row of that name."""
        try:
            row = self._client.get_table(database, name)
            _refuse_unless_external(row, "dropped")
            self._client.drop_table(database, name, delete_data=False)
        except NoSuchTableError:
            return

    def _renamed(self, database: str, source: str, target: str, change: HiveRowChange) -> Any:
        row = self._client.get_table(database, source)
        _refuse_unless_external(row, "renamed")
        row.tableName = target
        change.apply(row)
        return row


def _refuse_unless_external(row: Any, what: str) -> None:
    table = hive_table(row)
    if table.table_type != EXTERNAL_TABLE or not table.is_external:
        raise MetastoreError(
            f"Table {table} was not {what}: it is not external, and the metastore would move or delete its files. "
            "Nothing was changed."
        )
