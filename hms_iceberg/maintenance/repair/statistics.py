"""Statistics files that are gone."""

from __future__ import annotations

from hms_iceberg.errors import MissingFileError
from hms_iceberg.maintenance.repair.steps import RepairStep
from hms_iceberg.spec.metadata.metadata_changes import remove_partition_statistics, remove_statistics
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage


def without_lost_statistics(metadata: TableMetadata, storage: Storage) -> tuple[TableMetadata, list[RepairStep]]:
    """The metadata without statistics files that are not there, or not of their size; they can be computed again.

    Raises:
        StorageError: the storage does not say whether a file is there.
    """
    steps = []
    for file in metadata.statistics:
        if (wrong := _wrong(file.statistics_path, file.file_size_in_bytes, storage)) is not None:
            metadata = remove_statistics(metadata, file.snapshot_id)
            steps.append(_step(wrong, "compute-table-stats"))
    for partitions in metadata.partition_statistics:
        if (wrong := _wrong(partitions.statistics_path, partitions.file_size_in_bytes, storage)) is not None:
            metadata = remove_partition_statistics(metadata, partitions.snapshot_id)
            steps.append(_step(wrong, "compute-partition-stats"))
    return metadata, steps


def _step(wrong: str, command: str) -> RepairStep:
    return RepairStep("statistics", wrong, f"The table no longer names it; `hms-iceberg {command}` makes another one.")


def _wrong(location: str, size: int, storage: Storage) -> str | None:
    try:
        found = storage.length(location)
    except MissingFileError:
        return f"The statistics file {location} is not there."
    return None if found == size else f"The statistics file {location} has {found:,} bytes, not {size:,}."
