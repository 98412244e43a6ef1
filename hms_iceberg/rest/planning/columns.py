"""What the names of columns in a request mean: columns of the table as it is, or as it was at the snapshot.

A request says which (`use-snapshot-schema`), but not reliably: Apache Iceberg in Spark names those of the table, and
asks for the snapshot's. So a name is looked up in both. One that is another column in each says nothing, and what is
asked of it is left to the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from hms_iceberg.errors import IcebergError, UnknownColumnError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import CHANGELOG_COLUMNS, METADATA_COLUMNS
from hms_iceberg.spec.schema import Schema

T = TypeVar("T")

_BESIDE = frozenset((*METADATA_COLUMNS, *(each.name for each in CHANGELOG_COLUMNS)))


@dataclass(frozen=True)
class Columns:
    """The columns that a request may name.

    Attributes:
        now: those of the table.
        then: those of the snapshot that is read.
        case_sensitive: whether names must match in case.
    """

    now: Schema
    then: Schema
    case_sensitive: bool

    @classmethod
    def of(cls, metadata: TableMetadata, snapshot_id: int | None, case_sensitive: bool) -> Columns:
        """Those of a scan of a snapshot; None is for a table without one."""
        now, snapshot = metadata.schema(), metadata.snapshots_by_id.get(snapshot_id or 0)
        return cls(now, now if snapshot is None else metadata.schema_for_snapshot(snapshot), case_sensitive)

    def check(self, names: Iterable[str]) -> None:
        """Refuses names that no column has, nor one of those that every table has beside its own.

        Raises:
            UnknownColumnError: says which.
        """
        for name in names:
            if name.partition(".")[0] not in _BESIDE and self._id(self.then, name) is None:
                self.now.find_field(name, self.case_sensitive)

    def read(self, names: Iterable[str], read: Callable[[Schema], T]) -> T | None:
        """What is read by a schema that has the names; None if they do not mean one thing.

        Raises:
            UnknownColumnError: no column has one of the names.
            IcebergError: what `read` raises, if it cannot be read by either schema.
        """
        wanted = set(names)
        self.check(wanted)
        known: list[Schema] = []
        meant: dict[str, int] = {}
        for schema in (self.now, self.then):
            ids = {name: self._id(schema, name) for name in wanted}
            if any(found is not None and meant.setdefault(name, found) != found for name, found in ids.items()):
                return None
            known += [] if None in ids.values() else [schema]
        failure: IcebergError | None = None
        for schema in known:
            try:
                return read(schema)
            except IcebergError as error:  # a value may not fit the type that the column had
                failure = failure or error
        if failure is not None:
            raise failure
        return None

    def _id(self, schema: Schema, name: str) -> int | None:
        try:
            return schema.find_id(name, self.case_sensitive)
        except UnknownColumnError:
            return None
