"""Hive tables to Iceberg tables in place, and back."""

from __future__ import annotations

from hms_iceberg.migration.add_hive_files import AddFilesResult, add_folder, add_hive_files
from hms_iceberg.migration.migrate import MigrationResult, migrate
from hms_iceberg.migration.migration_plan import MigrationOptions
from hms_iceberg.migration.rollback import RollbackResult, rollback
from hms_iceberg.migration.snapshot_table import SnapshotResult, snapshot

__all__ = [
    "AddFilesResult",
    "MigrationOptions",
    "MigrationResult",
    "RollbackResult",
    "SnapshotResult",
    "add_folder",
    "add_hive_files",
    "migrate",
    "rollback",
    "snapshot",
]
