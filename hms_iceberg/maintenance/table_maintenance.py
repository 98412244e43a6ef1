"""`table.maintenance`: what can be done to care for one table."""

from __future__ import annotations

from typing import Any

from hms_iceberg.maintenance.check.consistency import ConsistencyReport, check_table
from hms_iceberg.maintenance.erasure.erasure_plan import ErasureResult
from hms_iceberg.maintenance.erasure.forget import forget, resume_forget
from hms_iceberg.maintenance.expire_with_files import SnapshotExpiry
from hms_iceberg.maintenance.orphan_files import OrphanFiles, remove_orphan_files
from hms_iceberg.maintenance.rewrite.convert_deletes import ConversionResult, convert_equality_deletes
from hms_iceberg.maintenance.rewrite.data_files import RewriteResult, rewrite_data_files
from hms_iceberg.maintenance.rewrite.manifest_rewrite import ManifestRewriteResult, rewrite_manifests
from hms_iceberg.maintenance.rewrite.rewrite_deletes import (
    DeleteRewriteResult,
    remove_dangling_deletes,
    rewrite_position_delete_files,
)
from hms_iceberg.maintenance.statistics_files import compute_partition_stats, compute_table_stats
from hms_iceberg.maintenance.table_path import TablePathResult, rewrite_table_path
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.snapshots_and_refs import PartitionStatisticsFile, StatisticsFile
from hms_iceberg.table.table import MAINTENANCE, Table
from hms_iceberg.updates.table_settings import RotateKeys


class TableMaintenance:
    """The actions of this room for one table; `Table.maintenance` reaches it through a hook."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def expire_snapshots(self) -> SnapshotExpiry:
        """Begins an expiry of snapshots and of the files that only they needed; `commit()` carries it out."""
        return SnapshotExpiry(self._table)

    def check(self) -> ConsistencyReport:
        """Compares metadata with what the files hold; see `check_table`."""
        return check_table(self._table)

    def rewrite_data_files(self, **options: Any) -> RewriteResult:
        """Replaces data files by fewer, larger or better sorted ones; see `rewrite_data_files`."""
        return rewrite_data_files(self._table, **options)

    def remove_dangling_deletes(self, **options: Any) -> tuple[DataFile, ...]:
        """Removes delete files that apply to nothing; see `remove_dangling_deletes`."""
        return remove_dangling_deletes(self._table, **options)

    def convert_equality_deletes(self, **options: Any) -> ConversionResult:
        """Replaces equality deletes by position deletes or vectors; see `convert_equality_deletes`."""
        return convert_equality_deletes(self._table, **options)

    def rewrite_position_delete_files(self, **options: Any) -> DeleteRewriteResult:
        """Replaces position delete files by fewer ones, or by vectors; see `rewrite_position_delete_files`."""
        return rewrite_position_delete_files(self._table, **options)

    def rewrite_manifests(self, **options: Any) -> ManifestRewriteResult:
        """Puts manifests together, sorted by partition; see `rewrite_manifests`."""
        return rewrite_manifests(self._table, **options)

    def remove_orphan_files(self, **options: Any) -> OrphanFiles:
        """Deletes files that nothing of the table names; see `remove_orphan_files`."""
        return remove_orphan_files(self._table, **options)

    def forget(self, where: str, **options: Any) -> ErasureResult:
        """Forgets rows in every version of the table, or plans to; see `forget`."""
        return forget(self._table, where, **options)

    def resume_forget(self, **options: Any) -> ErasureResult | None:
        """Goes on with an erasure that is not finished; see `resume_forget`."""
        return resume_forget(self._table, **options)

    def compute_table_stats(self, **options: Any) -> StatisticsFile | None:
        """Counts the distinct values of columns; see `compute_table_stats`."""
        return compute_table_stats(self._table, **options)

    def compute_partition_stats(self, **options: Any) -> PartitionStatisticsFile | None:
        """Writes statistics of the partitions; see `compute_partition_stats`."""
        return compute_partition_stats(self._table, **options)

    def rotate_keys(self) -> None:
        """Gives an encrypted table a new key between its own and those of its files; see `RotateKeys`.

        Raises:
            InvalidInputError: the table is not encrypted.
            TamperedFileError, KeyUnavailableError: a key was changed, or the table's cannot be used.
            CommitFailedError, CommitStateUnknownError: see `TableTransaction.commit_transaction`.
        """
        self._table.refresh()
        with self._table.transaction() as transaction:
            transaction.add(RotateKeys())

    def rewrite_table_path(self, source_prefix: str, target_prefix: str, **options: Any) -> TablePathResult:
        """Writes metadata with other paths, so that a copy of the table is a table; see `rewrite_table_path`.

        Args:
            source_prefix: the beginning of the paths to replace.
            target_prefix: what replaces it.
            options: further arguments of `hms_iceberg.maintenance.rewrite_table_path`.

        Returns:
            the staging folder, the file list, and counts of what was written anew.

        Raises:
            InvalidInputError, MissingFileError, CorruptManifestError, CorruptDataFileError, StorageError: as of that
                function; nothing is left behind.
        """
        return rewrite_table_path(self._table, source_prefix, target_prefix, **options)


MAINTENANCE.set(TableMaintenance)
