"""Small changes of metadata: location and statistics files."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.spec.metadata.metadata_changes import (
    remove_partition_statistics,
    remove_statistics,
    set_location,
    set_partition_statistics,
    set_statistics,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.statistics_files import PartitionStatisticsFile, StatisticsFile
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class SetLocation(Update):
    """Makes new files go to another base location; files that exist stay where they are."""

    location: str

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if somebody else moved the table meanwhile."""
        if base.location not in (start.location, self.location):
            raise CommitConflictError(
                f"Cannot set the location of the table at {start.location} to {self.location}: a concurrent commit set "
                f"it to {base.location}. Refresh the table and decide again."
            )

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the location."""
        return set_location(base, self.location, workspace.now_ms())


@dataclass(frozen=True)
class SetStatistics(Update):
    """Registers a statistics file, in place of another one of the same snapshot."""

    file: StatisticsFile | PartitionStatisticsFile

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Nothing: statistics are advisory, the last writer wins."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the file.

        Raises:
            NoSuchSnapshotError: the snapshot that it belongs to is not there.
        """
        if isinstance(self.file, PartitionStatisticsFile):
            return set_partition_statistics(base, self.file, workspace.now_ms())
        return set_statistics(base, self.file, workspace.now_ms())


@dataclass(frozen=True)
class RemoveStatistics(Update):
    """Forgets the statistics file of a snapshot; nothing happens if there is none."""

    snapshot_id: int
    of_partitions: bool = False

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Nothing: statistics are advisory."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata without the file."""
        remove = remove_partition_statistics if self.of_partitions else remove_statistics
        return remove(base, self.snapshot_id, workspace.now_ms())
