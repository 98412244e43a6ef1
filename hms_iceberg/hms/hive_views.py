"""Iceberg views in the Hive Metastore: rows of Hive views that point at view metadata, as Iceberg's Java has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hms_iceberg.errors import (
    CommitFailedError,
    MetastoreAnswerLostError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from hms_iceberg.hms.commit.lease import HiveLease
from hms_iceberg.hms.commit.lock_choice import LockChoice
from hms_iceberg.hms.commit.pointer_kinds import ViewSwap
from hms_iceberg.hms.connection.answers import ensure_made
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.rows.all_rows import HiveTableRows, list_names
from hms_iceberg.hms.rows.table_rows import ICEBERG_VIEW, METADATA_LOCATION, is_iceberg_view
from hms_iceberg.metastore import Identifier, TablePointer, ViewMetadataVersion


class HiveViews:
    """Implements `ViewMetastore`.

    Args:
        client: the metastore.
        swap: what moves a row's pointer.
        locks: which lock is taken for it.
    """

    def __init__(self, client: HmsClient, swap: ViewSwap, locks: LockChoice) -> None:
        self._client = client
        self._swap = swap
        self._locks = locks

    def load(self, identifier: Identifier) -> TablePointer:
        """The view's current pointer. See the port."""
        return self._swap.pointer(self._swap.read(_lower(identifier)))

    def shows(self, location: str, new: ViewMetadataVersion) -> bool:
        """Whether the metadata file at `location` is `new`. See the port."""
        return location == new.location

    @contextmanager
    def lease(self, identifier: Identifier) -> Iterator[HiveLease[ViewMetadataVersion]]:
        """Opens a lease for one commit to a view. See the port."""
        lease = HiveLease(_lower(identifier), self._swap, self._locks, {})
        try:
            yield lease
        finally:
            lease.release()

    def _is_view(self, name: Identifier) -> bool:
        try:
            self.load(name)
        except NoSuchViewError:
            return False
        return True

    def list(self, namespace: str) -> list[Identifier]:
        """The namespace's Iceberg views. See the port."""
        names = list_names(self._client, namespace.lower(), ICEBERG_VIEW, is_iceberg_view)
        return [(namespace.lower(), name) for name in names]

    def names_file(self, metadata_location: str) -> bool:
        """Whether any row names a file with this file name, in whatever folder; names are unique. See the port."""
        return HiveTableRows(self._client).is_any_with(METADATA_LOCATION, metadata_location.rpartition("/")[2])

    def drop(self, identifier: Identifier) -> None:
        """Removes the view's row. See the port.

        Raises:
            NoSuchViewError: there is none of that name.
        """
        name = _lower(identifier)
        self.load(name)
        try:
            self._client.drop_table(name[0], name[1])
        except MetastoreAnswerLostError as lost:
            ensure_made(lost, f"drop of view {'.'.join(name)}", lambda: not self._is_view(name))
        except NoSuchTableError as error:
            raise NoSuchViewError(f"There is no view {'.'.join(name)} any more.") from error

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a view's row. See the port.

        Raises:
            ViewAlreadyExistsError: the new name is taken.
            CommitFailedError: the view was dropped meanwhile.
        """
        source, target = _lower(source), _lower(target)
        self._client.get_database(target[0])
        self.load(source)
        with self.lease(source) as lease:
            lease.acquire()
            try:
                lease.rename(target)
            except TableAlreadyExistsError as error:
                raise ViewAlreadyExistsError(str(error)) from error
            except NoSuchTableError as error:
                raise CommitFailedError(f"Cannot rename view {'.'.join(source)}: it was dropped meanwhile.") from error


def _lower(identifier: Identifier) -> Identifier:
    namespace, name = identifier
    return (namespace.lower(), name.lower())
