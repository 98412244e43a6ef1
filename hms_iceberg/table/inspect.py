"""Metadata tables of a table as Arrow tables: `table.inspect.files()`."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hms_iceberg.arrow.columns.frames import frame_to_arrow
from hms_iceberg.arrow.deletes.position_delete_table import position_deletes
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.scan.metadata_tables import MetadataRequest, metadata_table
from hms_iceberg.storage import Storage


class InspectTable:
    """The metadata of a table as Arrow tables; names and columns are those of Apache Iceberg (Java).

    Tables about one snapshot take its id, and the current one without it. Each method raises ``NoSuchSnapshotError``
    for a snapshot that the table does not have, and ``MissingFileError`` or ``CorruptManifestError`` if metadata is
    gone or damaged.
    """

    def __init__(self, version: MetadataVersion, storage: Storage) -> None:
        self._version = version
        self._storage = storage

    def table(self, name: str, snapshot_id: int | None = None) -> pa.Table:
        """A metadata table by its name.

        Args:
            name: such as `files`, `entries`, `partitions` or `history`.
            snapshot_id: the snapshot; None takes the current one.

        Returns:
            its rows, with the columns and types that Apache Iceberg documents.

        Raises:
            InvalidInputError: there is no such metadata table.
            NoSuchSnapshotError: the table has no such snapshot.
            CorruptManifestError, MissingFileError: manifests cannot be read.
        """
        if name.lower() == "position_deletes":
            return self.position_deletes(snapshot_id)
        found = metadata_table(name, self._request(snapshot_id))
        return frame_to_arrow(found.frame, found.schema)

    def snapshots(self) -> pa.Table:
        """Snapshots that have not expired."""
        return self.table("snapshots")

    def history(self) -> pa.Table:
        """The snapshots that were current, and since when."""
        return self.table("history")

    def refs(self) -> pa.Table:
        """Branches and tags as rows."""
        return self.table("refs")

    def metadata_log_entries(self) -> pa.Table:
        """Metadata files, the current one last."""
        return self.table("metadata_log_entries")

    def entries(self, snapshot_id: int | None = None) -> pa.Table:
        """Manifest entries of a snapshot, removals included."""
        return self.table("entries", snapshot_id)

    def files(self, snapshot_id: int | None = None) -> pa.Table:
        """Data and delete files of a snapshot."""
        return self.table("files", snapshot_id)

    def data_files(self, snapshot_id: int | None = None) -> pa.Table:
        """Data files of a snapshot."""
        return self.table("data_files", snapshot_id)

    def delete_files(self, snapshot_id: int | None = None) -> pa.Table:
        """Delete files of a snapshot."""
        return self.table("delete_files", snapshot_id)

    def position_deletes(self, snapshot_id: int | None = None) -> pa.Table:
        """Every position that position delete files and deletion vectors of a snapshot delete."""
        return position_deletes(self._request(snapshot_id)).read_all()

    def partitions(
        self,
        snapshot_id: int | None = None,
        row_filter: str | BooleanExpression | None = None,
        case_sensitive: bool = True,
    ) -> pa.Table:
        """Counts the rows and files in each partition of a snapshot; with a filter, of partitions that may hold a
        matching row.

        Args:
            snapshot_id: the snapshot; None takes the current one.
            row_filter: a filter on columns of the table.
            case_sensitive: whether names of columns must match in case.

        Returns:
            a row for each partition: its values, counts of rows, files and deletes, and when it was last changed.

        Raises:
            NoSuchSnapshotError: the table has no such snapshot.
            InvalidInputError: the filter cannot be read, or does not fit the table.
            CorruptManifestError, MissingFileError: manifests cannot be read.
        """
        expression = parse(row_filter) if isinstance(row_filter, str) else row_filter
        request = replace(self._request(snapshot_id), row_filter=expression, case_sensitive=case_sensitive)
        found = metadata_table("partitions", request)
        return frame_to_arrow(found.frame, found.schema)

    def _request(self, snapshot_id: int | None) -> MetadataRequest:
        return MetadataRequest(self._version.metadata, self._storage, snapshot_id, self._version.location)

    def manifests(self, snapshot_id: int | None = None) -> pa.Table:
        """The manifests of a snapshot as rows."""
        return self.table("manifests", snapshot_id)

    def all_manifests(self) -> pa.Table:
        """Manifests of all snapshots, each with the snapshot that lists it."""
        return self.table("all_manifests")

    def all_entries(self) -> pa.Table:
        """Manifest entries of all snapshots."""
        return self.table("all_entries")

    def all_files(self) -> pa.Table:
        """Data and delete files of all snapshots."""
        return self.table("all_files")

    def all_data_files(self) -> pa.Table:
        """Data files of all snapshots."""
        return self.table("all_data_files")

    def all_delete_files(self) -> pa.Table:
        """Delete files of all snapshots."""
        return self.table("all_delete_files")
