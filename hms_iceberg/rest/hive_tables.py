"""Plain Hive tables served as Iceberg tables, for reading: an Iceberg table over the same files follows each of them.

The followers are in a namespace of their own, and are brought up to date when a client asks for the table; clients see
them under the Hive table's name.
"""

from __future__ import annotations

import threading
import time

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.errors import (
    ConfigurationError,
    IcebergError,
    NoSuchTableError,
    NotAnIcebergTableError,
    UnsupportedError,
)
from hms_iceberg.metastore import Identifier, TableRow, TableRows
from hms_iceberg.migration import Follower

_MOST_FOLLOWERS = 1000


class HiveTables:
    """The plain Hive tables of a catalog's metastore; `namespace` holds the followers, which are up to date for
    `seconds`."""

    def __init__(self, catalog: Catalog, namespace: str, seconds: float) -> None:
        rows = getattr(catalog.metastore, "table_rows", None)
        if not isinstance(rows, TableRows):
            raise ConfigurationError("Plain Hive tables need a catalog on a Hive Metastore.")
        self._catalog = catalog
        self._rows: TableRows = rows
        self._namespace = namespace
        self._seconds = seconds
        self._followers: BoundedCache[_Following] = BoundedCache(_MOST_FOLLOWERS)
        self._lock = threading.Lock()

    def names(self, namespace: str) -> list[Identifier]:
        """The plain Hive tables of a namespace, without views."""
        if namespace.lower() == self._namespace:
            return []
        return [row.identifier for row in self._rows.rows(namespace.lower()) if not row.is_iceberg]

    def row(self, identifier: Identifier) -> TableRow | None:
        """A plain Hive table's row; None if the name is no such table."""
        row = self._rows.row((identifier[0].lower(), identifier[1].lower()))
        return None if row is None or row.is_iceberg else row

    def follower(self, identifier: Identifier) -> Identifier:
        """The Iceberg table that follows a Hive table, brought up to date."""
        name = (identifier[0].lower(), identifier[1].lower())
        target = (self._namespace, f"{name[0]}__{name[1]}")
        with self._lock:
            following = self._followers.get(name)
            if following is None:
                following = self._followers.put(name, _Following(Follower(self._catalog, name, target)))
        with following.lock:
            if time.monotonic() - following.seen_at > self._seconds:
                self._catalog.create_namespace_if_not_exists(self._namespace)
                try:
                    following.follower.round()
                except (NoSuchTableError, UnsupportedError):
                    raise
                except IcebergError as error:
                    raise UnsupportedError(f"Hive table {'.'.join(name)} cannot be read now: {error}") from error
                following.seen_at = time.monotonic()
        return target


class _Following:
    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.lock = threading.Lock()
        self.seen_at = float("-inf")


def read_only(identifier: Identifier, error: NotAnIcebergTableError) -> UnsupportedError:
    """The error for a change of a plain Hive table."""
    name = ".".join(identifier)
    return UnsupportedError(f"{name} is a plain Hive table, which can only be read here. {error}")
