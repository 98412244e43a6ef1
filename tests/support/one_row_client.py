"""A metastore client with one row, whose alters can be told how to end."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

from hms_iceberg.errors import MetastoreUnavailableError, NoSuchTableError
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import RowSettings, new_row
from hms_iceberg.metastore import MetadataVersion
from tests.support.tables import metadata

NAME = ("db", "events")
BASE, NEW, OTHERS = (MetadataVersion(f"mem://t/metadata/0000{n}-x.metadata.json", metadata()) for n in range(3))


class OneRowClient:
    """A metastore with one row.

    Attributes:
        row: what it has; None if the table was dropped.
        sent: the rows that alters brought.
        expected: what each of them was to compare.
        answers: what happens at each alter, before it is carried out (`before`) or after; nothing if there is none.
    """

    def __init__(self) -> None:
        self.row: ttypes.Table | None = new_row(NAME, BASE, RowSettings())
        self.sent: list[ttypes.Table] = []
        self.expected: list[Mapping[str, str]] = []
        self.before: list[Callable[[], None]] = []
        self.after: list[Callable[[], None]] = []
        self.away = False

    def get_table(self, database: str, name: str) -> ttypes.Table:
        if self.away:
            raise MetastoreUnavailableError("away")
        if self.row is None or (database, name) != NAME:
            raise NoSuchTableError("dropped")
        return copy.deepcopy(self.row)

    def alter_table(self, database: str, name: str, row: ttypes.Table, environment: Mapping[str, str]) -> None:
        if (database, name) != NAME:
            raise NoSuchTableError(f"There is no {database}.{name}.")
        self.sent.append(copy.deepcopy(row))
        self.expected.append(environment)
        if self.before:
            self.before.pop(0)()
        self.row = copy.deepcopy(row)
        if self.after:
            self.after.pop(0)()

    def create_table(self, row: ttypes.Table) -> None:
        self.alter_table(*NAME, row, {})

    def show(self, version: MetadataVersion, previous: MetadataVersion | None = None) -> None:
        """Somebody else commits."""
        self.row = new_row(NAME, version, RowSettings())
        if previous is not None:
            self.row.parameters["previous_metadata_location"] = previous.location
