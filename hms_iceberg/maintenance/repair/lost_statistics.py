"""Statistics files that are gone or damaged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hms_iceberg.errors import MissingFileError
from hms_iceberg.maintenance.check.statistics_check import partition_statistics_damage, statistics_damage
from hms_iceberg.maintenance.repair.examination import Examination
from hms_iceberg.maintenance.repair.steps import RepairStep
from hms_iceberg.spec.metadata.metadata_changes import remove_partition_statistics, remove_statistics
from hms_iceberg.spec.metadata.table_metadata import TableMetadata


def without_lost_statistics(
    metadata: TableMetadata, examination: Examination
) -> tuple[TableMetadata, list[RepairStep]]:
    """The metadata without statistics files that are not there, or not what it says; they can be computed again.

    Args:
        metadata: the metadata, repaired so far.
        examination: what its snapshots hold.

    Raises:
        StorageError: the storage does not let a file be read.
    """
    steps, storage = [], examination.storage
    for file in metadata.statistics:
        wrong = _wrong(file.statistics_path, partial(statistics_damage, storage, file))
        if wrong is not None:
            metadata = remove_statistics(metadata, file.snapshot_id)
            steps.append(_step(wrong, "compute-table-stats"))
    for partitions in metadata.partition_statistics:
        counts = examination.counts(partitions.snapshot_id)
        wrong = _wrong(
            partitions.statistics_path,
            partial(partition_statistics_damage, storage, partitions, counts),
        )
        if wrong is not None:
            metadata = remove_partition_statistics(metadata, partitions.snapshot_id)
            steps.append(_step(wrong, "compute-partition-stats"))
    return metadata, steps


def _step(wrong: str, command: str) -> RepairStep:
    return RepairStep("statistics", wrong, f"The table no longer names it; `hms-iceberg {command}` makes another one.")


def _wrong(location: str, damage: Callable[[], str | None]) -> str | None:
    try:
        return damage()
    except MissingFileError:
        return f"The statistics file {location} is not there."
