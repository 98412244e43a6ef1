"""Migrates Hive tables to Iceberg tables in place, and back."""

from __future__ import annotations

from hms_iceberg.migration.add_hive_files import AddFilesResult, add_folder, add_hive_files
from hms_iceberg.migration.follow import Follower, FollowRound, follow
from hms_iceberg.migration.migrate import MigrationResult, migrate
from hms_iceberg.migration.migration_plan import MigrationOptions
from hms_iceberg.migration.snapshot_table import SnapshotResult, snapshot
from hms_iceberg.migration.undo.rollback_migration import RollbackResult, rollback
from hms_iceberg.migration.warehouse.warehouse_plan import TablePlan, WarehousePlan
from hms_iceberg.migration.warehouse.warehouse_planner import plan_warehouse
from hms_iceberg.migration.warehouse.warehouse_run import migrate_warehouse

__all__ = [
    "AddFilesResult",
    "FollowRound",
    "Follower",
    "MigrationOptions",
    "MigrationResult",
    "RollbackResult",
    "SnapshotResult",
    "TablePlan",
    "WarehousePlan",
    "add_folder",
    "add_hive_files",
    "follow",
    "migrate",
    "migrate_warehouse",
    "plan_warehouse",
    "rollback",
    "snapshot",
]
